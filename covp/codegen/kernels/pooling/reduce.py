"""Reductions of plain numbers over any axes; neighbouring outputs together.

MEAN and SUM of int8 and int16 requantize the sum of (element - zero point).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from covp.codegen.c_text import c_integer, c_type
from covp.codegen.kernels.loop_nest import LoopNest, dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import unsigned_type
from covp.codegen.kernels.requantize.finisher import finisher
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import UNROLLS, KnobSpace, Schedule, valid_schedules
from covp.graph.graph import Op
from covp.graph.ops.reduction import REDUCTIONS, mean_scaling

DType = np.dtype[Any]


@dataclass(frozen=True)
class Fold:
    """The C that folds elements into one value.

    Attributes:
        number: C type of the running value.
        start: its first value.
        tap: statement that adds to it, {0}, an element, {1}.
        result: expression of an output from it.
    """

    number: str
    start: str
    tap: str
    result: str = "{0}"


def reduce_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the numbers of neighbouring outputs that are computed together; the default first."""
    if request.op.attributes.axes is None:
        return [Schedule("run time")]
    outer = _outer(request.op)
    default = Schedule("sums", {"together": outer.unroll()})
    space = KnobSpace("sums", {"together": UNROLLS})
    return valid_schedules([space], default, lambda s: outer.divides_into(s["together"]))


def emit_plain_reduction(request: KernelRequest) -> LayerCode:
    """Emit a reduction of numbers without a scale, or one that keeps the scale."""
    op = request.op
    if op.attributes.axes is None:
        return _emit_run_time(request, _fold(op))
    if op.kind == "REDUCE_LOG_SUM_EXP":
        return emit_reduction(request, _EXPONENTIALS, [], [_MATH], before=_LARGEST)
    return emit_reduction(request, _fold(op), [], [_MATH])


def emit_reduction(
    request: KernelRequest,
    fold: Fold,
    definitions: Sequence[str],
    includes: Sequence[str],
    before: Fold | None = None,
) -> LayerCode:
    """Emit loops over the outputs, in them loops over what each is made of.

    Args:
        request: whose axes are known.
        fold: of the elements.
        definitions, includes: C text that it needs.
        before: a pass over the elements whose result the tap and the result of ``fold`` read, {2}.
    """
    op, schedule, outer = request.op, request.choose(reduce_schedules), _outer(request.op)
    shape, axes = op.input(0).shape, op.attributes.axes
    strides = dense_strides(shape)
    inner = LoopNest.over([shape[a] for a in axes], input=[strides[a] for a in axes]).inside()
    numbers = range(schedule["together"])
    elements = [f"part[{inner.at('input', 0, n * outer.strides['input'][-1])}]" for n in numbers]

    def over_elements(one: Fold, name: str) -> list[str]:
        values = ", ".join(f"{name}{n} = {one.start}" for n in numbers)
        taps = [one.tap.format(f"{name}{n}", elements[n], f"m{n}") for n in numbers]
        return [f"{one.number} {values};", *inner.loops(lambda ahead: taps)]

    body = [f"const {c_type(op.input(0).dtype)} *part = input + {outer.at('input')};"]
    if before is not None:
        body += over_elements(before, "m")
        body += [f"m{n} = {before.result.format(f'm{n}')};" for n in numbers]
    body += over_elements(fold, "s")
    for n in numbers:
        result = fold.result.format(f"s{n}", "", f"m{n}")
        body.append(f"output[{outer.at('output', n)}] = {result};")
    loops = outer.loops(lambda ahead: body if ahead == 0 else [], len(numbers))
    return Operands.of(op).layer(request, loops, definitions, includes, (), str(schedule))


def reduced_count(op: Op) -> int:
    """Return the number of elements that become one."""
    return op.input(0).size // op.output.size if op.output.size else 0


def _emit_run_time(request: KernelRequest, fold: Fold) -> LayerCode:
    """Emit a reduction over axes given at run time, which accumulates in the output.

    Where the axes do not give as many outputs as the graph states, nothing is written.
    """
    op = request.op
    source, rank, size = op.input(0), len(op.input(0).shape), op.output.size
    extents = ", ".join(map(str, source.shape)) or "1"
    strides = {"input": dense_strides(source.shape) or (1,)}
    nest = LoopNest(source.shape or (1,), strides, "ijklmnop")
    place = " + ".join(f"{i} * step[{d}]" for d, i in enumerate("ijklmnop"[:rank])) or "0"
    tap = fold.tap.format("value", f"input[{nest.at('input')}]")
    result = fold.result.format("output[o]")
    element = c_type(op.output.dtype)
    as_value, as_output = (
        ("", "") if fold.number == element else (f"({fold.number})", f"({element})")
    )
    body = [
        f"static const int32_t extents[] = {{{extents}}};",
        f"int32_t step[{max(rank, 1)}], size = 1;",
        "uint32_t reduced = 0;",
        f"for (int32_t i = 0; i < {op.input(1).size}; i++) {{",
        f"    int64_t axis = input1[i] < 0 ? input1[i] + {rank} : input1[i];",
        f"    reduced |= axis >= 0 && axis < {rank} ? 1u << axis : 0u;",
        "}",
        f"for (int32_t d = {rank} - 1; d >= 0; d--) {{",
        "    step[d] = reduced >> d & 1 ? 0 : size;",
        "    size *= reduced >> d & 1 ? 1 : extents[d];",
        "}",
        f"if (size != {size})",
        "    return;",
        f"for (int32_t o = 0; o < {size}; o++)",
        f"    output[o] = {fold.start};",
        *nest.loops(
            lambda ahead: [
                f"int32_t o = {place};",
                f"{fold.number} value = {as_value}output[o];",
                tap,
                f"output[o] = {as_output}value;",
            ]
        ),
    ]
    if fold.result != "{0}":
        body += [f"for (int32_t o = 0; o < {size}; o++)", f"    output[o] = {result};"]
    renamed = [line.replace("input[", "input0[") for line in body]
    return Operands.of(op, (0, 1)).layer(request, renamed, includes=[_MATH], schedule="run time")


_MATH = "#include <math.h>"
_LARGEST = Fold("float", "-INFINITY", "{0} = {1} > {0} ? {1} : {0};", "isfinite({0}) ? {0} : 0.0f")
_EXPONENTIALS = Fold("float", "0.0f", "{0} += expf({1} - {2});", "logf({0}) + {2}")
_MAX, _MIN = "{0} = {1} > {0} ? {1} : {0};", "{0} = {1} < {0} ? {1} : {0};"


def _nan(op: Op, beyond: str) -> str:
    """Return the tap of the largest or the least float."""
    counts = " || {1} != {1}" if op.attributes.nan_counts else ""
    return f"{{0}} = {{1}} {beyond} {{0}}{counts} ? {{1}} : {{0}};"


_FLOAT: dict[str, Callable[[Op], Fold]] = {
    "MEAN": lambda op: Fold("float", "0.0f", "{0} += {1};", f"{{0}} / {reduced_count(op)}.0f"),
    "REDUCE_L1": lambda op: Fold("float", "0.0f", "{0} += fabsf({1});"),
    "REDUCE_L2": lambda op: Fold("float", "0.0f", "{0} += {1} * {1};", "sqrtf({0})"),
    "REDUCE_LOG_SUM": lambda op: Fold("float", "0.0f", "{0} += {1};", "logf({0})"),
    "REDUCE_MAX": lambda op: Fold("float", "-INFINITY", _nan(op, ">")),
    "REDUCE_MIN": lambda op: Fold("float", "INFINITY", _nan(op, "<")),
    "REDUCE_PROD": lambda op: Fold("float", "1.0f", "{0} *= {1};"),
    "REDUCE_SUM_SQUARE": lambda op: Fold("float", "0.0f", "{0} += {1} * {1};"),
    "SUM": lambda op: Fold("float", "0.0f", "{0} += {1};"),
}


def _fold(op: Op) -> Fold:
    dtype = op.input(0).dtype
    if dtype.kind == "f":
        return _FLOAT[op.kind](op)
    if dtype == np.bool_:
        return _logical(op.kind)
    return _integer(op, dtype)


def _logical(kind: str) -> Fold:
    if kind in ("REDUCE_ANY", "REDUCE_MAX"):
        return Fold("uint8_t", "0", "{0} |= {1};")
    return Fold("uint8_t", "1", "{0} &= {1};")


def _integer(op: Op, dtype: DType) -> Fold:
    """Return the fold of an integer type; sums and products wrap in unsigned arithmetic."""
    t, u, info = c_type(dtype), unsigned_type(dtype), np.iinfo(dtype)
    wrapped = f"({t}){{0}}"
    if op.kind == "REDUCE_MAX":
        return Fold(t, c_integer(int(info.min)), _MAX)
    if op.kind == "REDUCE_MIN":
        return Fold(t, c_integer(int(info.max)), _MIN)
    if op.kind == "MEAN":
        wide, elements = "u" * (dtype.kind == "u") + "int64_t", reduced_count(op)
        mean = f"({t})(({wide}){{0}} / {elements})" if elements else "0"
        return Fold("uint64_t", "0", "{0} += (uint64_t){1};", mean)
    tap = {
        "REDUCE_L1": f"{{0}} += {{1}} < 0 ? 0u - ({u}){{1}} : ({u}){{1}};"
        if dtype.kind == "i"
        else "{0} += {1};",
        "REDUCE_PROD": f"{{0}} *= ({u}){{1}};",
        "REDUCE_SUM_SQUARE": f"{{0}} += ({u}){{1}} * ({u}){{1}};",
        "SUM": f"{{0}} += ({u}){{1}};",
    }[op.kind]
    return Fold(u, "1" if op.kind == "REDUCE_PROD" else "0", tap, wrapped)


def _outer(op: Op) -> LoopNest:
    """Return the loops over the outputs."""
    shape, axes = op.input(0).shape, op.attributes.axes
    strides = dense_strides(shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    extents = [shape[axis] for axis in kept]
    return LoopNest.over(
        extents, input=[strides[axis] for axis in kept], output=dense_strides(extents)
    )


for _kind, _rule in REDUCTIONS.items():
    _plain = [name for name in _rule.types if name not in ("float32", "bool")]
    kernel(_kind, *_plain, schedules=reduce_schedules, rule="wraps")(emit_plain_reduction)
    _others = [name for name in ("float32", "bool") if name in _rule.types]
    kernel(_kind, *_others, schedules=reduce_schedules)(emit_plain_reduction)
for _kind in ("REDUCE_MAX", "REDUCE_MIN"):
    kernel(_kind, "int8", "int16", "uint8", schedules=reduce_schedules)(emit_plain_reduction)


@kernel("MEAN", "int8", "int16", schedules=reduce_schedules)
@kernel("SUM", "int8", "int16", schedules=reduce_schedules)
def emit_mean(request: KernelRequest) -> LayerCode:
    """Emit the requantized sum of (element - zero point); a mean's factor includes the count."""
    op = request.op
    count = prod(op.input(0).shape[axis] for axis in op.attributes.axes)
    out, scaling = op.output, mean_scaling(op, count)
    bound = (scaling.clamp[1] + 1 + abs(op.input(0).zero_point)) * count
    requantizer = finisher(request.core, request.arithmetic, scaling, bound)
    columns = ", ".join(str(int(column[0])) for column in requantizer.columns())
    zero = op.input(0).zero_point * count
    # sums that may leave int32 wrap, as TFLM's do
    total, cast = ("uint32_t", "(int32_t)") if requantizer.wraps else ("int32_t", "")
    result = f"({c_type(out.dtype)})requantize({cast}{{0}} - ({zero}), {columns})"
    fold = Fold(total, "0", f"{{0}} += ({total}){{1}};" if cast else "{0} += {1};", result)
    return emit_reduction(request, fold, [requantizer.function()], [requantizer.includes])
