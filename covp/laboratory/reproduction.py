"""A failing example of Hypothesis as a test of its own, to be pasted beside the one that failed."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import hypothesis

from covp.base.array_text import text

F = TypeVar("F", bound=Callable[..., Any])
_PRINTED: dict[str, Sequence[str]] = {}
"""The names with which values of a module's classes are printed, by module."""
_PLAIN = (bool, int, float, str, bytes, type(None), tuple)


def print_from(module: str, names: Sequence[str]) -> None:
    """Let a reproduction import names, which values are printed with, from a module."""
    _PRINTED[module] = names


def reproduction(test: Callable[..., Any], drawn: dict[str, Any], fixed: dict[str, Any]) -> str:
    """Return Python text of a test without ``@given``: the values, then the test's body.

    It needs what the file of the test imports and defines, and runs beside it.

    Args:
        test: the function below ``@given``.
        drawn: what Hypothesis has drawn, by name.
        fixed: the other arguments: fixtures stay arguments, parameters become values.
    """
    values = drawn | {name: value for name, value in fixed.items() if isinstance(value, _PLAIN)}
    arguments = [name for name in fixed if name not in values]
    lines = [f"{name} = {text(value)}" for name, value in values.items()]
    body = textwrap.indent("\n".join([*lines, _body(test, [*fixed, *drawn])]), "    ")
    imports = _imports("\n".join(lines))
    return f"{imports}def {test.__name__}_again({', '.join(arguments)}):\n{body}\n"


def _body(test: Callable[..., Any], names: list[str]) -> str:
    """Return the statements of a test without its docstring; without source a call of it."""
    try:
        source = textwrap.dedent(inspect.getsource(test))
        function: Any = ast.parse(source).body[0]
        statements = function.body[ast.get_docstring(function) is not None :]
        lines = source.splitlines()[statements[0].lineno - 1 :]
        return textwrap.dedent("\n".join(lines))
    except (OSError, SyntaxError, IndexError, AttributeError):
        given = ", ".join(f"{name}={name}" for name in names)
        return f"{test.__name__}.hypothesis.inner_test({given})"


def _imports(values: str) -> str:
    lines = ["import numpy as np\n"] if "np." in values else []
    for module, known in _PRINTED.items():
        names = [name for name in known if re.search(rf"\b{name}\(", values)]
        lines += [f"from {module} import {', '.join(names)}\n"] if names else []
    return "".join(lines) + ("\n\n" if lines else "")


class _Note:
    """Text that is made when it is printed: of the last failing example alone."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self._make())


def reproduce(test: F) -> F:
    """Make a failing test below ``@given`` print its simplest example as a test.

    The pytest plugin does so for tests that use its fixtures.
    """

    @functools.wraps(test)
    def run_with_note(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            return test(*arguments, **named)
        except Exception:
            given = inspect.signature(test).bind(*arguments, **named).arguments
            hypothesis.note(_Note(lambda: "As a test:\n\n" + reproduction(test, given, {})))
            raise

    return run_with_note  # type: ignore[return-value]
