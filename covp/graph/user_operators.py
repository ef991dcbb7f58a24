"""Operators from outside: kinds that covp does not know, registered by a user or a package.

A file named by ``covp run --operators FILE.py``, or the module of an entry point in the group
``covp.operators``, calls `register_operator`; see examples/squared_relu.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from covp.base.plugins import call_hook, describe, load_file
from covp.errors import ModelError, UsageError
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, everything
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, no_macs

ENTRY_POINTS = "covp.operators"


def same_shape(op: Op) -> list[Shape]:
    """Return the shape rule of operators that work element by element."""
    return [op.input(0).shape]


@dataclass(frozen=True)
class UserOperator:
    """An operator kind, computed on the core by ``compose``, ``body`` or a table.

    Attributes:
        kind: TFLite's builtin name ("FAKE_QUANT"), or the custom operator's name.
        reference: from the inputs' values (None for one left out) to the outputs'; the oracle of
            all other implementations.
        infer_shapes: the outputs' shapes; raises ModelError where the inputs do not fit.
        convert: the operator and its options in the model file (a flatbuffer table, for custom
            operators bytes) to `Op.attributes`.
        compose: operators that covp knows, in order, which compute the same; the last ones write
            ``op.outputs``. None: this operator is not composed.
        body: C statements of a kernel. It reads ``input`` (or ``input0``, ``input1``...) and
            writes ``output``, typed pointers to dense arrays. Without it, int8 operators of one
            input are looked up in a table made by ``reference``.
        definitions: C text before the kernel's function.
        macs: multiply-accumulates of the operator.
        reads: for each output an index map, which says what its elements are computed from:
            `covp.graph.index_map.elementwise`, or a function that calls `rows_of`, `window` or
            others there. By default everything depends on everything.
    """

    kind: str
    reference: Callable[[Op, Sequence[Array | None]], list[Array]]
    infer_shapes: Callable[[Op], list[Shape]] = same_shape
    convert: Callable[[Op, Any], Any] | None = None
    compose: Callable[[Op], Sequence[Op] | None] | None = None
    body: Callable[[Op], str] | None = None
    definitions: Callable[[Op], str] | None = None
    macs: Callable[[Op], int] = no_macs
    reads: Callable[[Op], Sequence[IndexMap]] = everything


_OPERATORS: dict[str, UserOperator] = {}
_loaded = False


def register_operator(operator: UserOperator) -> UserOperator:
    """Make an operator known; one of the same name from the same place replaces the earlier.

    Raises:
        UsageError: covp knows an operator of that name by itself.
    """
    if operator.kind in OPS and operator.kind not in _OPERATORS:
        raise UsageError(f"operator {operator.kind}: covp has one of its own")
    _OPERATORS[operator.kind] = operator
    OPS[operator.kind] = OpDefinition(
        operator.infer_shapes, operator.reference, operator.macs, reads=operator.reads
    )
    return operator


def unregister_operator(kind: str) -> None:
    """Forget an operator. Raises KeyError."""
    del _OPERATORS[kind]
    del OPS[kind]


def find_user_operator(kind: str) -> UserOperator | None:
    """Return a registered operator, those of installed packages included."""
    if kind not in _OPERATORS and kind not in OPS:
        _load_plugins()
    return _OPERATORS.get(kind)


def registered_from() -> tuple[str, ...]:
    """Return the modules that registered operators, in order; users' files are modules too."""
    return tuple(dict.fromkeys(each.reference.__module__ for each in _OPERATORS.values()))


def composition(op: Op) -> list[Op] | None:
    """Return the operators that compose a user's operator, checked; None if not composed.

    Raises:
        ModelError: ``compose`` broke its contract.
    """
    operator = _OPERATORS.get(op.kind)
    if operator is None or operator.compose is None:
        return None
    found = call_hook(f"{op.name}: {op.kind}", "compose", operator.compose, op, error=ModelError)
    if found is None:
        return None
    ops = list(found)
    written = [tensor for part in ops for tensor in part.outputs]
    if not all(any(out is tensor for tensor in written) for out in op.outputs):
        raise ModelError(f"{op.name}: compose() of {op.kind} leaves its output unwritten")
    return ops


def load_operator_file(path: str | Path, also: Callable[[], object] = lambda: None) -> None:
    """Run the Python file at ``path``, which registers operators or things that ``also`` lists.

    Raises:
        UsageError: there is no such file, or it registers nothing.
        ModelError: it raises.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError("no such file; operators are registered by a Python file", where=path)
    before = dict(_OPERATORS), also()
    load_file(file, ModelError, again=True)
    if before == (_OPERATORS, also()):
        raise UsageError(
            f"{path} registers nothing new: call register_operator, or register "
            "of covp.hardware.intrinsics or covp.graph.onnx.converters"
        )


def _load_plugins() -> None:
    """Import what installed packages name in the entry point group, once."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            found = entry.load()
        except Exception as error:
            raise ModelError(
                f"operators of {entry.value} cannot be loaded: {describe(error)}"
            ) from error
        if isinstance(found, UserOperator):
            register_operator(found)
