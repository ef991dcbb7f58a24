"""ADD, SUB and MUL with numpy's broadcasting.

int8 sums are one linear step where that is bit-exact for every pair of bytes
(`linear_sum`); else each input goes through a table of TFLM's rescaled values. int8 products are
requantized as the sums of a convolution are. The schedule holds the form and the number of
elements per iteration.

TFLM brings both inputs of a sum to a common scale, adds, and scales the sum: three fixed-point
multiplications with roundings, about 80 instructions per element. The whole is a function of two
bytes, so that a shorter one can be checked on all 65536 pairs when the code is generated::

    output = clamp((a * x + b * y + c) >> s)

``a``, ``b`` follow from the scales; for every pair the wanted output bounds ``c`` from both sides,
and an integer within all bounds is bit-exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, c_float, c_type
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.loop_nest import LoopNest, broadcast_strides, dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import unsigned_type
from covp.codegen.kernels.requantize.finisher import finisher
from covp.codegen.kernels.requantize.requantize import Requantizer
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import UNROLLS, KnobSpace, Schedule, valid_schedules
from covp.graph.arithmetic import Scaling
from covp.graph.graph import Op
from covp.graph.ops import definition
from covp.graph.ops.definition import PLAIN_INTEGERS
from covp.graph.ops.elementwise import product_factor, sum_factors
from covp.graph.quantization import (
    activation_range,
    float_activation_range,
    multiply_by_quantized_multiplier,
)

Array = NDArray[np.int64]
_NEIGHBOURS = [(0, 0), (0, 1), (1, 0), (1, 1), (0, -1), (-1, 0), (-1, -1), (1, -1), (-1, 1)]


@dataclass(frozen=True)
class LinearSum:
    """The constants of ``clamp((a * x + b * y + c) >> s)``."""

    a: int
    b: int
    c: int
    s: int
    low: int
    high: int


def linear_sum(op: Op) -> LinearSum | None:
    """Return constants that give TFLM's output for every pair of bytes; None if none are found."""
    wanted = _every_pair(op)
    low, high = int(wanted.min()), int(wanted.max())
    x = np.arange(-128, 128, dtype=np.int64)
    sign = -1 if op.kind == "SUB" else 1
    ratios = op.input(0).scale / op.output.scale, sign * op.input(1).scale / op.output.scale
    for s in range(30, 9, -1):
        exact = [ratio * 2.0**s for ratio in ratios]
        # the whole sum has to fit 32 bits; partial sums may wrap
        if 128 * sum(map(abs, exact)) >= 1 << 32 or not _fits(exact, x, wanted, s):
            continue
        for da, db in _NEIGHBOURS:
            a, b = round(exact[0]) + da, round(exact[1]) + db
            value = a * x[:, None] + b * x[None, :]
            c = _offset(value, wanted, s, low, high)
            if c is not None and int(np.abs(value + c).max()) < 1 << 31:
                return LinearSum(a, b, c, s, low, high)
    return None


def _fits(exact: list[float], x: Array, wanted: Array, s: int) -> bool:
    """Return whether the sum, offset to be near the wanted outputs, stays within 32 bits."""
    value = exact[0] * x[:, None] + exact[1] * x[None, :]
    inside = (wanted > wanted.min()) & (wanted < wanted.max())
    c = np.median(wanted[inside] * 2.0**s - value[inside]) if inside.any() else 0.0
    return bool(np.abs(value + c).max() < (1 << 31) - (1 << s))


def _every_pair(op: Op) -> Array:
    """Return the reference's output for all pairs, [x + 128, y + 128]."""
    x = np.repeat(np.arange(-128, 128, dtype=np.int8)[:, None], 256, axis=1)
    return definition(op.kind).reference(op, [x, x.T])[0].astype(np.int64)


def _offset(value: Array, wanted: Array, s: int, low: int, high: int) -> int | None:
    at_least = np.where(wanted > low, (wanted << s) - value, -(1 << 40)).max()
    at_most = np.where(wanted < high, ((wanted + 1) << s) - 1 - value, 1 << 40).min()
    if at_least > at_most:
        return None
    return int((at_least + at_most) // 2)


def linear_function(core: Core, constants: LinearSum) -> str:
    """Return C text of ``static inline int8_t combine(int32_t x, int32_t y)``."""
    k = constants
    a, b, c = (value % (1 << 32) for value in (k.a, k.b, k.c))
    return (
        "static inline int8_t combine(int32_t x, int32_t y)\n{\n"
        f"    uint32_t sum = (uint32_t)x * {a}u + (uint32_t)y * {b}u + {c}u;\n"
        f"    int32_t result = (int32_t)sum >> {k.s};\n"
        f"    {clamp(core, 'result', k.low, k.high)}\n"
        "    return (int8_t)result;\n}\n"
    )


def linear_includes(core: Core, constants: LinearSum) -> str:
    """Return the header that `linear_function` needs, or nothing."""
    return clamp_includes(core, constants.low, constants.high)


_SIGNS = {"ADD": "+", "SUB": "-", "MUL": "*"}


_SUM_SPACES = tuple(KnobSpace(tile, {"unroll": UNROLLS}) for tile in ("linear", "tables"))


def sum_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a sum, the default first."""
    nest = _nest(request.op)
    linear = linear_sum(request.op) is not None
    default = Schedule("linear" if linear else "tables", {"unroll": nest.unroll()})
    return valid_schedules(
        _SUM_SPACES,
        default,
        lambda s: nest.divides_into(s["unroll"]) and (linear or s.tile == "tables"),
    )


def plain_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of the other forms, the default first."""
    nest = _nest(request.op)
    default = Schedule("plain", {"unroll": nest.unroll()})
    space = KnobSpace("plain", {"unroll": UNROLLS})
    return valid_schedules([space], default, lambda s: nest.divides_into(s["unroll"]))


@kernel("ADD", "int8", schedules=sum_schedules)
@kernel("SUB", "int8", schedules=sum_schedules)
def emit_sum(request: KernelRequest) -> LayerCode:
    """Emit the linear form where it is exact, else tables."""
    schedule = request.choose(sum_schedules)
    constants = linear_sum(request.op)
    if schedule.tile == "tables" or constants is None:
        return _emit_table_sum(request, schedule)
    return emit_elements(
        request,
        [linear_function(request.core, constants)],
        [linear_includes(request.core, constants)],
        schedule,
    )


def _emit_table_sum(request: KernelRequest, schedule: Schedule) -> LayerCode:
    """Emit TFLM's sum: the rescaled inputs from tables, then its two roundings."""
    op = request.op
    first, second, result = sum_factors(op)
    terms = [_terms(op, 0, first), _terms(op, 1, second)]
    if op.kind == "SUB":
        terms[1] = -terms[1]
    bound = sum(int(np.abs(term).max()) for term in terms)
    requantizer = _requantizer(request, result, bound)
    combine = (
        "static inline int8_t combine(int32_t x, int32_t y)\n{\n"
        "    int32_t sum = terms0[(uint8_t)x] + terms1[(uint8_t)y];\n"
        f"    return (int8_t)requantize(sum, {_columns(requantizer)});\n}}\n"
    )
    tables = [
        c_array(f"terms{i}", term.astype(np.int32), f"input {i} at the common scale")
        for i, term in enumerate(terms)
    ]
    return emit_elements(
        request, [*tables, requantizer.function(), combine], [requantizer.includes], schedule
    )


@kernel("MUL", "int8", schedules=plain_schedules)
def emit_product(request: KernelRequest) -> LayerCode:
    """Emit the requantized product of (x - zero point) and (y - zero point)."""
    op = request.op
    zeros = op.input(0).zero_point, op.input(1).zero_point
    bound = (128 + abs(zeros[0])) * (128 + abs(zeros[1]))
    requantizer = _requantizer(request, product_factor(op), bound)
    combine = (
        "static inline int8_t combine(int32_t x, int32_t y)\n{\n"
        f"    int32_t product = (x - ({zeros[0]})) * (y - ({zeros[1]}));\n"
        f"    return (int8_t)requantize(product, {_columns(requantizer)});\n}}\n"
    )
    schedule = request.choose(plain_schedules)
    return emit_elements(
        request, [requantizer.function(), combine], [requantizer.includes], schedule
    )


@kernel("ADD", *PLAIN_INTEGERS, schedules=plain_schedules, rule="wraps")
@kernel("SUB", *PLAIN_INTEGERS, schedules=plain_schedules, rule="wraps")
@kernel("MUL", *PLAIN_INTEGERS, schedules=plain_schedules, rule="wraps")
def emit_integers(request: KernelRequest) -> LayerCode:
    """Emit arithmetic of numbers that wrap modulo their size."""
    op, dtype = request.op, request.op.output.dtype
    kind, wide = c_type(dtype), unsigned_type(dtype)
    # unsigned, because signed overflow is undefined
    combine = (
        f"static inline {kind} combine({kind} x, {kind} y)\n{{\n"
        f"    return ({kind})(({wide})x {_SIGNS[op.kind]} ({wide})y);\n}}\n"
    )
    return emit_elements(request, [combine], [], request.choose(plain_schedules))


@kernel("ADD", "float32", schedules=plain_schedules)
@kernel("SUB", "float32", schedules=plain_schedules)
@kernel("MUL", "float32", schedules=plain_schedules)
def emit_plain(request: KernelRequest) -> LayerCode:
    """Emit arithmetic of numbers as they are, with the clamp of a fused activation."""
    op, schedule = request.op, request.choose(plain_schedules)
    combine = (
        "static inline float combine(float x, float y)\n{\n"
        f"    float result = x {_SIGNS[op.kind]} y;\n"
        f"{float_clamp('result', op.attributes.activation)}"
        "    return result;\n}\n"
    )
    return emit_elements(request, [combine], [], schedule)


def float_clamp(name: str, activation: str) -> str:
    """Return C statements that bring a float variable into the range of a fused activation."""
    low, high = float_activation_range(activation)
    text = ""
    if low != -np.inf:
        text += f"    {name} = {name} < {c_float(low)} ? {c_float(low)} : {name};\n"
    if high != np.inf:
        text += f"    {name} = {name} > {c_float(high)} ? {c_float(high)} : {name};\n"
    return text


def _terms(op: Op, position: int, factor: tuple[int, int]) -> NDArray[np.int64]:
    """Return an input at the common scale, in the order of unsigned bytes."""
    every = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    return multiply_by_quantized_multiplier((every - op.input(position).zero_point) << 20, *factor)


def _requantizer(request: KernelRequest, factor: tuple[int, int], bound: int) -> Requantizer:
    out = request.op.output
    activation = request.op.attributes.activation
    clamp = activation_range(activation, out.scale, out.zero_point, out.dtype)
    multiplier, shift = (np.array([value], np.int32) for value in factor)
    scaling = Scaling(multiplier, shift, out.zero_point, clamp)
    return finisher(request.core, request.arithmetic, scaling, bound)


def _columns(requantizer: Requantizer) -> str:
    return ", ".join(str(int(column[0])) for column in requantizer.columns())


def _nest(op: Op) -> LoopNest:
    shape = op.output.shape
    return LoopNest.over(
        shape,
        input0=broadcast_strides(op.input(0).shape, shape),
        input1=broadcast_strides(op.input(1).shape, shape),
        output=dense_strides(shape),
    )


def emit_elements(
    request: KernelRequest, definitions: list[str], includes: list[str], schedule: Schedule
) -> LayerCode:
    """Emit loops that call ``combine`` for every element of the output."""
    op, nest = request.op, _nest(request.op)

    def step(ahead: int) -> list[str]:
        x, y = f"input0[{nest.at('input0', ahead)}]", f"input1[{nest.at('input1', ahead)}]"
        return [f"output[{nest.at('output', ahead)}] = combine({x}, {y});"]

    # an input of the output's size is read at the very index that is written
    full = [t for t in (op.input(0), op.input(1)) if t.nbytes == op.output.nbytes]
    return Operands.of(op, (0, 1)).layer(
        request, nest.loops(step, schedule["unroll"]), definitions, includes, full, str(schedule)
    )
