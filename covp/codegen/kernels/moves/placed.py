"""Operators that look up each axis on its own, by tables or by what comes at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.kernels.loop_nest import dense_strides
from covp.codegen.kernels.moves.copy import c_element, copy_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.layout import ELEMENT_TYPES
from covp.graph.ops.placed import PadMode, places


def table_loops(op: Op, tables: Sequence[NDArray[np.int64] | None]) -> tuple[list[str], list[str]]:
    """Return C arrays and loops that copy by a table of positions for each axis; None: as they are.

    The axes after the last table are copied as one run.
    """
    shape = op.input(0).shape
    strides = dense_strides(shape)
    last = max((axis for axis, table in enumerate(tables) if table is not None), default=-1)
    run = strides[last] if last >= 0 else op.output.size
    definitions = []
    element = c_type(op.output.dtype)
    pointers = [*(f"from{axis}" for axis in range(last + 1)), "input"]  # [-1] is the input
    source = pointers[last], (1,), 0
    body = copy_loops((run,), source, ("output", (1,), 0), op.output.dtype.itemsize)
    body.append(f"output += {run};")
    for axis in reversed(range(last + 1)):
        table = tables[axis]
        step = f"i{axis} * {strides[axis]}"
        if table is not None:
            name, step = f"places{axis}", f"places{axis}[i{axis}]"
            definitions.append(c_array(name, (table * strides[axis]).astype(np.int32)))
        body = [
            f"for (int32_t i{axis} = 0; i{axis} < {op.output.shape[axis]}; i{axis}++) {{",
            f"    const {element} *from{axis} = {pointers[axis - 1]} + {step};",
            indent(body),
            "}",
        ]
    return definitions, body


@kernel("MIRROR_PAD", *ELEMENT_TYPES)
def emit_mirror_pad(request: KernelRequest) -> LayerCode:
    """Emit loops with lookup tables for the padded axes."""
    op, a = request.op, request.op.attributes
    tables = [
        places(a.mode, -before, count, extent) if before or after else None
        for (before, after), count, extent in zip(
            a.paddings, op.output.shape, op.input(0).shape, strict=True
        )
    ]
    definitions, body = table_loops(op, tables)
    return Operands.of(op).layer(request, body, definitions)


_PLACE: dict[PadMode, str] = {
    "constant": "return at < 0 || at >= extent ? -1 : at;",
    "edge": "return at < 0 ? 0 : at < extent ? at : extent - 1;",
    "wrap": "at %= extent;\n    return at < 0 ? at + extent : at;",
    "reflect": (
        "const int32_t period = extent > 1 ? 2 * extent - 2 : 1;\n    at %= period;\n"
        "    at += at < 0 ? period : 0;\n    return at < extent ? at : period - at;"
    ),
}


@kernel("DYNAMIC_PAD", *ELEMENT_TYPES)
def emit_dynamic_pad(request: KernelRequest) -> LayerCode:
    """Emit a pad that finds how much comes before each axis, then goes element by element."""
    op, a = request.op, request.op.attributes
    positions = _given(op, 4)
    names = {position: f"input{n}" for n, position in enumerate(positions)}
    rank, count = len(op.input(0).shape), op.input(1).size // 2
    axis = _axis(names.get(3), rank)
    setup = [
        f"int32_t before[{max(rank, 1)}] = {{0}};",
        f"for (int32_t n = 0; n < {count}; n++) {{",
        f"    before[{axis}] = (int32_t){names[1]}[n];",
        "}",
    ]
    fill = f"{names[2]}[0]" if 2 in names else c_element(0, op.output.dtype)
    place = (
        f"static inline int32_t place(int32_t at, int32_t extent)\n{{\n    {_PLACE[a.mode]}\n}}\n"
    )
    body = _place_elements(op, "place(i{0} - before[{0}], {1})", fill)
    return Operands.of(op, positions).layer(request, [*setup, *body], [place])


@kernel("DYNAMIC_SLICE", *ELEMENT_TYPES)
def emit_dynamic_slice(request: KernelRequest) -> LayerCode:
    """Emit loops that first find the first element and the step of each axis."""
    op = request.op
    positions = _given(op, 4)
    names = {position: f"input{n}" for n, position in enumerate(positions)}
    shape = op.input(0).shape
    extents = c_array("extents", np.array(shape or (1,), np.int32))
    steps = f"(int32_t){names[3]}[n]" if 3 in names else "1"
    setup = [
        f"int32_t first[{len(shape)}] = {{0}}, step[{len(shape)}];",
        f"for (int32_t n = 0; n < {len(shape)}; n++) {{",
        "    step[n] = 1;",
        "}",
        f"for (int32_t n = 0; n < {op.input(1).size}; n++) {{",
        f"    const int32_t axis = {_axis(names.get(2), len(shape))};",
        f"    const int64_t start = {names[1]}[n];",
        "    const int64_t from = start < 0 ? start + extents[axis] : start;",
        f"    step[axis] = {steps};",
        "    const int32_t most = extents[axis] - (step[axis] < 0);",
        "    first[axis] = from < 0 ? 0 : from < most ? (int32_t)from : most;",
        "}",
    ]
    place = (
        f"static inline int32_t place(int32_t at, int32_t extent)\n{{\n    {_PLACE['edge']}\n}}\n"
    )
    body = _place_elements(op, "place(first[{0}] + i{0} * step[{0}], {1})", "")
    return Operands.of(op, positions).layer(request, [*setup, *body], [extents, place])


def _given(op: Op, most: int) -> list[int]:
    return [n for n, tensor in enumerate(op.inputs[:most]) if tensor is not None]


def _axis(name: str | None, rank: int) -> str:
    """Return the C expression of entry n's axis, modulo the rank so that it always exists."""
    return "n" if name is None else f"(int32_t)(({name}[n] % {rank} + {rank}) % {rank})"


def _place_elements(op: Op, place: str, fill: str) -> list[str]:
    """Emit loops over the output that read the input where ``place`` of each axis says.

    ``fill`` is written where a position is negative; without it none is.
    """
    shape = op.input(0).shape
    strides = dense_strides(shape)
    at = " + ".join(f"c{axis} * {stride}" for axis, stride in enumerate(strides)) or "0"
    value = f"input0[{at}]"
    if fill and shape:
        value = f"({' | '.join(f'c{axis}' for axis in range(len(shape)))}) < 0 ? {fill} : {value}"
    body = [f"*output++ = {value};"]
    for axis in reversed(range(len(shape))):
        body = [
            f"for (int32_t i{axis} = 0; i{axis} < {op.output.shape[axis]}; i{axis}++) {{",
            f"    const int32_t c{axis} = {place.format(axis, shape[axis])};",
            indent(body),
            "}",
        ]
    return body
