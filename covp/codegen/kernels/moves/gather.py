"""Operators that find elements by indices: GATHER, scatters, REVERSE_SEQUENCE, ONE_HOT."""

from __future__ import annotations

import math
from collections.abc import Sequence

from covp.codegen.c_text import c_type, indent
from covp.codegen.kernels.loop_nest import LoopNest, dense_strides
from covp.codegen.kernels.moves.copy import copy_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import unsigned_type
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.layout import ELEMENT_TYPES

WRAPPED = """\
/* A negative index counts from the end; one beyond the axis is its nearest element. */
static inline int32_t wrapped(int32_t index, int32_t extent)
{
    index += index < 0 ? extent : 0;
    return index < 0 ? 0 : index < extent ? index : extent - 1;
}
"""


@kernel("GATHER", *ELEMENT_TYPES)
def emit_gather(request: KernelRequest) -> LayerCode:
    """Emit loops that copy the elements at each index as one run."""
    op, a = request.op, request.op.attributes
    source, indices = op.input(0).shape, op.input(1).shape
    extent, run = source[a.axis], math.prod(source[a.axis + 1 :])
    batches = math.prod(source[: a.batches])
    outer = math.prod(source[a.batches : a.axis])
    count = math.prod(indices[a.batches :])
    copy = copy_loops((run,), ("from", (1,), 0), ("output", (1,), 0), op.output.dtype.itemsize)
    body = [
        f"for (int32_t b = 0; b < {batches}; b++) {{",
        f"    for (int32_t o = 0; o < {outer}; o++) {{",
        f"        for (int32_t p = 0; p < {count}; p++) {{",
        f"            const int32_t at = wrapped((int32_t)input1[b * {count} + p], {extent});",
        f"            const {c_type(op.output.dtype)} *from ="
        f" input0 + ((b * {outer} + o) * {extent} + at) * {run};",
        indent(copy, 3),
        f"            output += {run};",
        "        }",
        "    }",
        "}",
    ]
    return Operands.of(op, (0, 1)).layer(request, body, [WRAPPED])


@kernel("GATHER_ND", *ELEMENT_TYPES)
def emit_gather_nd(request: KernelRequest) -> LayerCode:
    """Emit loops that copy the elements at each tuple of coordinates as one run."""
    op, shared = request.op, request.op.attributes.batches
    source, indices = op.input(0).shape, op.input(1).shape
    depth = indices[-1]
    run = math.prod(source[shared + depth :])
    batches = math.prod(source[:shared])
    copy = copy_loops((run,), ("from", (1,), 0), ("output", (1,), 0), op.output.dtype.itemsize)
    body = [
        f"for (int32_t b = 0; b < {batches}; b++) {{",
        f"    for (int32_t p = 0; p < {math.prod(indices[shared:-1])}; p++) {{",
        f"        const {c_type(op.output.dtype)} *from ="
        f" input0 + b * {math.prod(source[shared:])};",
        indent(_coordinates("from", source, shared, depth), 2),
        indent(copy, 2),
        f"        input1 += {depth};",
        f"        output += {run};",
        "    }",
        "}",
    ]
    return Operands.of(op, (0, 1)).layer(request, _read_on(op, body), [WRAPPED])


def _coordinates(pointer: str, shape: Sequence[int], first: int, depth: int) -> list[str]:
    """Return the statements that add what the coordinates at ``indices`` say to a pointer."""
    strides = dense_strides(shape)
    return [
        f"{pointer} += wrapped((int32_t)indices[{n}], {shape[first + n]}) * {strides[first + n]};"
        for n in range(depth)
    ]


def _read_on(op: Op, body: list[str]) -> list[str]:
    """Return the C with a pointer that advances over input 1, which may be an array."""
    head = f"const {c_type(op.input(1).dtype)} *indices = input1;"
    return [head, *(line.replace("input1 +=", "indices +=") for line in body)]


@kernel("GATHER_ELEMENTS", *ELEMENT_TYPES)
def emit_gather_elements(request: KernelRequest) -> LayerCode:
    """Emit one element for each index."""
    op = request.op
    nest, place = _element_nest(op)

    def step(ahead: int) -> list[str]:
        return [f"output[{nest.at('index')}] = input0[{place}];"]

    return Operands.of(op, (0, 1)).layer(request, nest.loops(step), [WRAPPED])


def _element_nest(op: Op) -> tuple[LoopNest, str]:
    """Return the loops over the indices, and the C index of the element that each means."""
    axis, source, shape = op.attributes.axis, op.input(0).shape, op.input(1).shape
    strides = dense_strides(source)
    rest = [0 if n == axis else stride for n, stride in enumerate(strides)]
    nest = LoopNest.over(shape, index=dense_strides(shape), data=rest)
    index = f"wrapped((int32_t)input1[{nest.at('index')}], {source[axis]})"
    return nest, f"{nest.at('data')} + {index} * {strides[axis]}"


def _combine(op: Op, update: str) -> str:
    """Return the statement that makes one of ``*to`` and an update; sums and products wrap."""
    dtype, reduction = op.output.dtype, op.attributes.reduction
    if reduction == "none":
        return f"*to = {update};"
    if reduction in ("max", "min"):
        nan = f" || {update} != {update}" if dtype.kind == "f" else ""
        sign = ">" if reduction == "max" else "<"
        return f"*to = {update} {sign} *to{nan} ? {update} : *to;"
    sign = "+" if reduction == "add" else "*"
    if dtype.kind == "f":
        return f"*to {sign}= {update};"
    wide = unsigned_type(dtype)
    return f"*to = ({c_type(dtype)})(({wide})*to {sign} ({wide}){update});"


@kernel("SCATTER_ELEMENTS", *ELEMENT_TYPES)
def emit_scatter_elements(request: KernelRequest) -> LayerCode:
    """Emit a copy of the data, then one update after the other."""
    op = request.op
    nest, place = _element_nest(op)

    def step(ahead: int) -> list[str]:
        update = _combine(op, f"input2[{nest.at('index')}]")
        return [f"{c_type(op.output.dtype)} *to = output + {place};", update]

    return _scatter(request, nest.loops(step))


@kernel("SCATTER_ND", *ELEMENT_TYPES)
def emit_scatter_nd(request: KernelRequest) -> LayerCode:
    """Emit a copy of the data, then one run of updates after the other."""
    op = request.op
    source, indices = op.input(0).shape, op.input(1).shape
    depth = indices[-1]
    run = math.prod(source[depth:])
    update = _combine(op, f"input2[p * {run} + i]")
    body = [
        f"for (int32_t p = 0; p < {math.prod(indices[:-1])}; p++) {{",
        f"    {c_type(op.output.dtype)} *to = output;",
        indent(_coordinates("to", source, 0, depth)),
        f"    for (int32_t i = 0; i < {run}; i++, to++) {{",
        f"        {update}",
        "    }",
        f"    input1 += {depth};",
        "}",
    ]
    return _scatter(request, _read_on(op, body))


def _scatter(request: KernelRequest, updates: list[str]) -> LayerCode:
    op = request.op
    size = (op.output.size,)
    copy = copy_loops(size, ("input0", (1,), 0), ("output", (1,), 0), op.output.dtype.itemsize)
    whole = ["if (input0 != output) {", indent(copy), "}"]
    if op.input(0).data is not None:
        whole = copy
    operands = Operands.of(op, (0, 1, 2))
    return operands.layer(request, [*whole, *updates], [WRAPPED], in_place=[op.input(0)])


@kernel("REVERSE_SEQUENCE", *ELEMENT_TYPES)
def emit_reverse_sequence(request: KernelRequest) -> LayerCode:
    """Emit each step of each sequence; the elements after both axes are copied as one run."""
    op, a = request.op, request.op.attributes
    shape = op.input(0).shape
    steps = shape[a.time_axis]
    strides = dense_strides(shape)
    others = [n for n in range(len(shape)) if n not in (a.time_axis, a.batch_axis)]
    rest = [strides[n] for n in others]
    copy = copy_loops(
        [shape[n] for n in others], ("from", rest, 0), ("to", rest, 0), op.output.dtype.itemsize
    )
    element = c_type(op.output.dtype)
    body = [
        f"for (int32_t row = 0; row < {shape[a.batch_axis]}; row++) {{",
        "    const int32_t given = (int32_t)input1[row];",
        f"    const int32_t length = given < {steps} ? given : {steps};",
        f"    for (int32_t t = 0; t < {steps}; t++) {{",
        "        const int32_t at = t < length ? length - 1 - t : t;",
        f"        const {element} *from = input0 + row * {strides[a.batch_axis]}"
        f" + at * {strides[a.time_axis]};",
        f"        {element} *to = output + row * {strides[a.batch_axis]}"
        f" + t * {strides[a.time_axis]};",
        indent(copy, 2),
        "    }",
        "}",
    ]
    return Operands.of(op, (0, 1)).layer(request, body)


@kernel("ONE_HOT", "int32", "int64")
def emit_one_hot(request: KernelRequest) -> LayerCode:
    """Emit ONE_HOT: the on or off value, in the order of the output."""
    op, a = request.op, request.op.attributes
    shape = op.input(0).shape
    outer, inner = math.prod(shape[: a.axis]), math.prod(shape[a.axis :])
    body = [
        f"for (int32_t o = 0; o < {outer}; o++) {{",
        f"    for (int32_t d = 0; d < {a.depth}; d++) {{",
        f"        for (int32_t i = 0; i < {inner}; i++) {{",
        f"            const {c_type(op.input(0).dtype)} index = input0[o * {inner} + i];",
        f"            *output++ = input1[index == d || index == d - {a.depth}];",
        "        }",
        "    }",
        "}",
    ]
    return Operands.of(op, (0, 1)).layer(request, body)
