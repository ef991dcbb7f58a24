"""The C of strips: those of a layer that look alike share a function and its constants."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from covp.chip.cores import Core
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, schedules
from covp.codegen.schedule import Schedule
from covp.graph.graph import Op, Strip, Tensor

_ARRAY = re.compile(r"^static (const \w+) (\w+)(\[\d+\])([^;{]*= \{\n[^}]*\};\n)", re.MULTILINE)
"""A constant array as `covp.codegen.c_text.c_array` writes it: type, name, extent, and the rest."""
_LEAST_SHARED = 800
"""Characters of an array from which strips of several forms share it; smaller ones stay where the
compiler knows their values."""


class SharedFunctions:
    """The functions of strips.

    Args:
        emit: writes a layer.
    """

    def __init__(self, emit: Callable[[Op, str], LayerCode]) -> None:
        self._emit = emit
        self._known: dict[object, LayerCode] = {}
        self._symbols: dict[tuple[str, ...], str] = {}
        """The arrays that stand in files of their own, by their text."""

    def emit(self, op: Op, function: str) -> LayerCode:
        """Return a layer; a strip like one before it calls that one's function."""
        if not isinstance(op, Strip):
            return self._emit(op, function)
        form = _form(op)
        if form not in self._known:
            self._known[form] = self._with_shared_arrays(self._emit(op, function))
        return _with_tensors(self._known[form], op)

    def _with_shared_arrays(self, code: LayerCode) -> LayerCode:
        """Return a layer whose large arrays stand in files that other strips read, too."""
        files: dict[str, str] = {}

        def share(found: re.Match[str]) -> str:
            kind, name, extent, rest = found.groups()
            if len(rest) < _LEAST_SHARED:
                return found[0]
            symbol = self._symbols.setdefault((kind, extent, rest), f"{code.function}_{name}")
            declaration = f"extern {kind} {symbol}{extent};\n"
            files[f"{symbol}.c"] = (
                f"#include <stdint.h>\n{declaration}{kind} {symbol}{extent}{rest}"
            )
            return f"{declaration}#define {name} {symbol}\n"

        return replace(code, source=_ARRAY.sub(share, code.source), files={**code.files, **files})


def strip_schedule(op: Op, core: Core, choose: Callable[[Op], Schedule | None]) -> Schedule | None:
    """Return the schedule of an operator; a strip has its layer's where that is valid for it."""
    found = choose(op)
    if found is None and isinstance(op, Strip) and op.whole is not None:
        found = choose(op.whole)
        if found not in schedules(KernelRequest(op, core, "strip")):
            return None
    return found


def _form(op: Op) -> object:
    """Return a key that is equal for operators that the same C code computes."""
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
