"""MEAN and REDUCE_MAX over any axes, int8 and float32; neighbouring outputs together."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from covp.codegen.c_text import c_type
from covp.codegen.kernels.loop_nest import LoopNest, dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize import Requantizer
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import UNROLLS, Schedule, Space, valid_schedules
from covp.graph.graph import Op
from covp.graph.ops.reduction import mean_factor


def mean_schedules(request: KernelRequest) -> list[Schedule]:
    """The numbers of neighbouring outputs that are computed together; the default first."""
    outer = _outer(request.op)
    default = Schedule("sums", {"together": outer.unroll()})
    space = Space("sums", {"together": UNROLLS})
    return valid_schedules([space], default, lambda s: outer.divides_into(s["together"]))


@kernel("MEAN", "int8", schedules=mean_schedules)
def emit_mean(request: KernelRequest) -> LayerCode:
    """The sum less its zero points, requantized with the count in the factor, as TFLM does."""
    op = request.op
    count = _count(op)
    multiplier, shift = (np.array([value], np.int32) for value in mean_factor(op, count))
    bound = (128 + abs(op.input(0).zero_point)) * count
    out = op.output
    requantizer = Requantizer(request.core, multiplier, shift, out.zero_point, -128, 127, bound)
    columns = ", ".join(str(int(column[0])) for column in requantizer.columns())
    zero = op.input(0).zero_point * count

    def mean(total: str) -> str:
        return f"(int8_t)requantize({total} - ({zero}), {columns})"

    return _emit(request, mean, [requantizer.function()], [requantizer.includes])


@kernel("MEAN", "float32", schedules=mean_schedules)
def emit_float_mean(request: KernelRequest) -> LayerCode:
    """The sum over the count."""
    return _emit(request, lambda total: f"{total} / {_count(request.op)}.0f", [], [])


@kernel("REDUCE_MAX", "int8", "float32", schedules=mean_schedules)
def emit_max(request: KernelRequest) -> LayerCode:
    """The largest element, in stored units: both sides have one quantization."""
    single = request.op.output.dtype == np.float32
    lowest = "-__builtin_inff()" if single else "-128"
    result = "{}" if single else "(int8_t){}"
    larger = "{0} = {1} > {0} ? {1} : {0};".format
    return _emit(request, result.format, [], [], lowest, larger)


def _count(op: Op) -> int:
    """Elements of one mean."""
    return prod(op.input(0).shape[axis] for axis in op.attributes.axes)


def _outer(op: Op) -> LoopNest:
    """The loops over the outputs."""
    shape, axes = op.input(0).shape, op.attributes.axes
    strides = dense_strides(shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    extents = [shape[axis] for axis in kept]
    return LoopNest.over(
        extents, input=[strides[axis] for axis in kept], output=dense_strides(extents)
    )


def _emit(
    request: KernelRequest,
    mean: Callable[[str], str],
    definitions: list[str],
    includes: list[str],
    start: str = "0",
    tap: Callable[[str, str], str] = "{} += {};".format,
) -> LayerCode:
    """The loops.

    Args:
        mean: C expression of an output from that of its sum.
        definitions, includes: C text that it needs.
        start: first value of a sum.
        tap: statement that adds to a sum (the first) an element (the second).
    """
    op, schedule, outer = request.op, request.choose(mean_schedules), _outer(request.op)
    shape, axes = op.input(0).shape, op.attributes.axes
    strides = dense_strides(shape)
    inner = LoopNest.over([shape[a] for a in axes], input=[strides[a] for a in axes]).inside()
    together = schedule["together"]
    sums = [f"s{n}" for n in range(together)]
    number = "float" if op.output.dtype == np.float32 else "int32_t"
    reads = [
        tap(s, f"part[{inner.at('input', 0, n * outer.strides['input'][-1])}]")
        for n, s in enumerate(sums)
    ]
    body = [
        f"const {c_type(op.output.dtype)} *part = input + {outer.at('input')};",
        f"{number} {', '.join(f'{s} = {start}' for s in sums)};",
        *inner.loops(lambda ahead: reads),
    ]
    for n, s in enumerate(sums):
        body.append(f"output[{outer.at('output', n)}] = {mean(s)};")
    loops = outer.loops(lambda ahead: body if ahead == 0 else [], together)
    return Operands.of(op).layer(request, loops, definitions, includes, (), str(schedule))
