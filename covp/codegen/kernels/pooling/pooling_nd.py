"""MAX_POOL, AVERAGE_POOL, LP_POOL with any number of axes, and MAX_UNPOOL."""

from __future__ import annotations

import math

import numpy as np

from covp.codegen.c_text import c_float, c_type, indent
from covp.codegen.kernels.moves.copy import c_element, fill_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.elementwise import float_clamp
from covp.codegen.kernels.window_nd import WindowND
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.pooling_nd import counts, index_strides, lowest


@kernel("MAX_POOL", "float32", "int8", "uint8", "int16", "int32")
def emit_max(request: KernelRequest) -> LayerCode:
    """Emit the largest element of each window; where it is, on demand."""
    op = request.op
    element = c_type(op.output.dtype)
    value = lowest(op.output.dtype)
    start = c_float(value) if op.output.dtype.kind == "f" else c_element(value, op.output.dtype)
    window = _window(op)
    head, tap, tail = [], "s = *from > s ? *from : s;", []
    if len(op.outputs) > 1:
        index = " + ".join(f"p{axis} * {n}" for axis, n in _places(op))
        head = ["int64_t where = -1;"]
        tap = f"if (*from > s || where < 0) {{ s = *from; where = {index}; }}"
        plane = math.prod(window.source[1:-1])
        tail = [f"output1[c] = where + (int64_t)(b * {window.source[-1]} + c) * {plane};"]
    return _emit(request, element, start, tap, "s", [*head], tail)


def _places(op: Op) -> list[tuple[int, int]]:
    strides = index_strides(op.input(0).shape, op.attributes.column_major)
    return list(enumerate(strides))


@kernel("AVERAGE_POOL", "float32")
def emit_average(request: KernelRequest) -> LayerCode:
    """Emit the sum of each window by the elements that count."""
    op, a = request.op, request.op.attributes
    axes = _window(op).axes
    known = np.unique(counts(op))
    if known.size == 1:
        count = c_float(float(known[0]))
    elif a.count_padding:
        # of each axis, the taps inside the padded image
        wide = [n + sum(pads) for n, pads in zip(op.input(0).shape[1:-1], a.padding, strict=True)]
        count = " * ".join(
            f"reached(start{n} + {a.padding[n][0]}, {a.filter[n]}, {a.dilation[n]}, {wide[n]})"
            for n in axes
        )
    else:
        count = " * ".join(f"(last{n} - first{n})" for n in axes)
    text = count if known.size == 1 else f"(float)({count})"
    definitions = [_REACHED] if "reached" in text else []
    return _emit(request, "float", "0.0f", "s += *from;", f"s / {text}", [], [], definitions)


_REACHED = """\
static inline int32_t reached(int32_t start, int32_t taps, int32_t step, int32_t extent)
{
    const int32_t inside = (extent - start + step - 1) / step;
    return inside < taps ? inside : taps;
}
"""


@kernel("LP_POOL", "float32")
def emit_norm(request: KernelRequest) -> LayerCode:
    """Emit the p-norm of each window; p = 1 and 2 without powf."""
    p = request.op.attributes.p
    tap, result, includes = {
        1: ("s += __builtin_fabsf(*from);", "s", []),
        2: ("s += *from * *from;", "sqrtf(s)", ["#include <math.h>"]),
    }.get(
        p,
        (
            f"s += powf(__builtin_fabsf(*from), {c_float(p)});",
            f"powf(s, {c_float(1 / p)})",
            ["#include <math.h>"],
        ),
    )
    return _emit(request, "float", "0.0f", tap, result, [], [], includes=includes)


@kernel("MAX_UNPOOL", "float32", "int8")
def emit_unpool(request: KernelRequest) -> LayerCode:
    """Emit MAX_UNPOOL: zeros, then each element at its index, clamped to the output."""
    op = request.op
    zero = c_element(0, op.output.dtype)
    body = [
        *fill_loops((op.output.size,), ("output", (1,), 0), zero),
        f"for (int32_t n = 0; n < {op.input(0).size}; n++) {{",
        "    const int64_t at = input1[n];",
        f"    output[at < 0 ? 0 : at < {op.output.size} ? at : {op.output.size - 1}] = input0[n];",
        "}",
    ]
    return Operands.of(op, (0, 1)).layer(request, body)


def _window(op: Op) -> WindowND:
    a = op.attributes
    before = [pads[0] for pads in a.padding]
    shapes = op.input(0).shape, op.output.shape
    return WindowND(*shapes, a.filter, a.stride, a.dilation, before)


def _emit(
    request: KernelRequest,
    number: str,
    start: str,
    tap: str,
    result: str,
    head: list[str],
    tail: list[str],
    definitions: list[str] | None = None,
    includes: list[str] | None = None,
) -> LayerCode:
    """Emit the loops over pixels and channels.

    Args:
        request: of the layer.
        number: C type of what is collected in ``s``.
        start: its first value.
        tap: statement for the element ``*from``.
        result: expression of the output.
        head, tail: statements before and after the taps of a channel.
        definitions, includes: C text.
    """
    op, window = request.op, _window(request.op)
    clamp = float_clamp("result", op.attributes.activation) if number == "float" else ""
    element = c_type(op.input(0).dtype)
    targets = ("output0", "output1") if len(op.outputs) > 1 else ("output",)
    pixel = [
        f"for (int32_t c = 0; c < {window.source[-1]}; c++) {{",
        f"    {number} s = {start};",
        indent(head),
        indent(window.taps([f"const {element} *from = image + {window.tap('c')};", tap])),
        f"    {number} result = {result};",
        *([clamp.rstrip("\n")] if clamp else []),
        f"    {targets[0]}[c] = result;",
        indent(tail),
        "}",
    ]
    body = window.loops([line for line in pixel if line], element, "input", targets)
    operands = Operands.of(op, (0,), len(op.outputs))
    return operands.layer(request, body, definitions or [], includes or [])
