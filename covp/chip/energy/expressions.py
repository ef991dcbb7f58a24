"""`value_of`: attributes that are arithmetic over other attributes, as in Accelergy's files."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "max": max,
    "min": min,
}
_LONGEST = 500


def value_of(given: Any, names: Mapping[str, Any]) -> Any:
    """A number where ``given`` is the text of an expression over numbers; else ``given`` itself.

    Args:
        given: a number, or a text such as "width * n_words", "ceil(log2(depth))" or "45nm".
        names: values that the text may use.
    """
    if not isinstance(given, str) or len(given) > _LONGEST:
        return given
    if given in names:
        return names[given]
    try:
        return _number(ast.parse(given.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError):
        return given


def _number(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), (int, float)):
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, names)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_number(node.left, names), _number(node.right, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function: Callable[..., Any] = _FUNCTIONS.get(node.func.id, _unknown)
        return function(*(_number(one, names) for one in node.args))
    return _unknown()


def _unknown(*_: object) -> Any:
    raise ValueError
