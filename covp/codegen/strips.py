"""The C of strips: those of a layer that look alike share a function and its constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from covp.chip.cores import Core
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, schedules
from covp.codegen.schedule import Schedule
from covp.graph.graph import Op, Strip, Tensor


class SharedFunctions:
    """The functions of strips.

    Args:
        emit: writes a layer.
    """

    def __init__(self, emit: Callable[[Op, str], LayerCode]) -> None:
        self._emit = emit
        self._known: dict[object, LayerCode] = {}

    def emit(self, op: Op, function: str) -> LayerCode:
        """Return a layer; a strip like one before it calls that one's function."""
        if not isinstance(op, Strip):
            return self._emit(op, function)
        form = _form(op)
        if form not in self._known:
            self._known[form] = self._emit(op, function)
        return _with_tensors(self._known[form], op)


def strip_schedule(op: Op, core: Core, choose: Callable[[Op], Schedule | None]) -> Schedule | None:
    """Return the schedule of an operator; a strip has its layer's where that is valid for it."""
    found = choose(op)
    if found is None and isinstance(op, Strip) and op.whole is not None:
        found = choose(op.whole)
        if found not in schedules(KernelRequest(op, core, "strip")):
            return None
    return found


def _form(op: Op) -> object:
    """Equal for operators that the same C computes."""
    return (op.kind, op.attributes, op.rounding, *map(_type, (*op.inputs, *op.outputs)))


def _type(tensor: Tensor | None) -> object:
    if tensor is None or tensor.constant:
        return id(tensor)
    return tensor.shape, tensor.dtype, id(tensor.quantization)


def _with_tensors(code: LayerCode, op: Op) -> LayerCode:
    """Return the code of a layer, called with another one's tensors."""
    if code.op is op:
        return code
    pairs = zip((*code.op.inputs, *code.op.outputs), (*op.inputs, *op.outputs), strict=True)
    tensors = {id(a): b for a, b in pairs if a is not None and b is not None}

    def own(argument: Argument) -> Argument:
        if isinstance(argument, Scratch):
            return Scratch(argument.nbytes)
        return tensors[id(argument)]

    return replace(
        code,
        op=op,
        arguments={name: own(argument) for name, argument in code.arguments.items()},
        in_place=tuple(tensors[id(tensor)] for tensor in code.in_place),
        changed=tuple((tensors[id(a)], tensors[id(b)]) for a, b in code.changed),
    )
