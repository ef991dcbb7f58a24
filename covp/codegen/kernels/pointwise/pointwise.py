"""Operators of plain numbers that work element by element: one loop nest and a formula."""

from __future__ import annotations

import re
from collections.abc import Sequence

from covp.codegen.c_text import c_type
from covp.codegen.kernels.loop_nest import LoopNest, broadcast_strides, dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import Formula, formula
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.pointwise import POINTWISE

_VARIABLES = "xyz"
_TYPES = {
    "f": ["float32"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "b": ["bool"],
}


def emit_pointwise(request: KernelRequest) -> LayerCode:
    """Emit the formula of the operator for every element of the output."""
    return emit_formula(request, formula(request.op))


def emit_formula(request: KernelRequest, of: Formula, includes: Sequence[str] = ()) -> LayerCode:
    """Emit a loop nest around a C function of one element of each input, with broadcasting.

    May run in place of an input that is read at the very index that is written.
    """
    op, shape = request.op, request.op.output.shape
    positions = [i for i, tensor in enumerate(op.inputs) if tensor is not None]
    names = ["input"] if len(positions) == 1 else [f"input{n}" for n in range(len(positions))]
    strides = {
        name: broadcast_strides(op.input(position).shape, shape)
        for name, position in zip(names, positions, strict=True)
    }
    nest = LoopNest.over(shape, **strides, output=dense_strides(shape))
    parameters = ", ".join(_parameter(op, position, of) for position in positions)
    head = f"static inline {c_type(op.output.dtype)} apply({parameters})"
    function = "\n".join([head, "{", *(f"    {line}" for line in of.statements), "}\n"])

    def step(ahead: int) -> list[str]:
        values = ", ".join(f"{name}[{nest.at(name, ahead)}]" for name in names)
        return [f"output[{nest.at('output', ahead)}] = apply({values});"]

    same = [
        t
        for p in positions
        if (t := op.input(p)).shape == shape and t.dtype.itemsize == op.output.dtype.itemsize
    ]
    return Operands.of(op, positions).layer(
        request,
        nest.loops(step, nest.unroll() if of.cheap else 1),
        definitions=[of.definitions, function],
        includes=["#include <math.h>", *includes],
        in_place=same,
    )


def _parameter(op: Op, position: int, of: Formula) -> str:
    name = _VARIABLES[position]
    used = any(re.search(rf"\b{name}\b", line) for line in of.statements)
    unused = "" if used else " __attribute__((unused))"
    return f"{c_type(op.input(position).dtype)} {name}{unused}"


def _register() -> None:
    for kind, rule in POINTWISE.items():
        # the first input says which emitter; of a choice it is the condition
        letters = "b" if kind == "SELECT_V2" else rule.takes
        for letter in letters:
            kernel(kind, *_TYPES[letter], rule="wraps" if letter in "iu" else None)(emit_pointwise)


_register()
