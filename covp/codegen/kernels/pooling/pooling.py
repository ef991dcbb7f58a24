"""AVERAGE_POOL_2D and MAX_POOL_2D of all types: several channels of a window together.

An average rounds half away from zero, one of a uint8 file up. int16 code divides. For int8 the
division by the number of pixels is a multiplication by a reciprocal, checked for every sum when the
code is generated: for n pixels and a sum s

    t = s + n / 2 + 128 * n           (1 less where n is even and s negative; not of uint8)
    average = (t * ceil(2**24 / n) >> 24) - 128

where t is never negative. Where windows are cut at the border and the core has a divider, the
code divides: that is fewer instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covp.codegen.c_text import SIGN_SHIFTED, c_array, c_float, c_type, indent
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.elementwise import float_clamp
from covp.codegen.kernels.window import Window
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import UNROLLS, KnobSpace, Schedule, valid_schedules
from covp.graph.quantization import activation_range

_BITS = 24


def pool_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the number of channels that are computed together; the default first."""
    channels = request.op.output.shape[3]
    together = next(n for n in (4, 3, 2, 1) if channels % n == 0)
    space = KnobSpace("window", {"channels": UNROLLS})
    default = Schedule("window", {"channels": together})
    return valid_schedules([space], default, lambda s: channels % s["channels"] == 0)


@kernel("MAX_POOL_2D", "int8", "int16", schedules=pool_schedules)
def emit_max_pool(request: KernelRequest) -> LayerCode:
    """Emit the largest element of a window; padding does not count."""

    def tap(n: int) -> str:
        return f"s{n} = from[{n}] > s{n} ? from[{n}] : s{n};"

    lowest = str(np.iinfo(request.op.output.dtype).min)
    return _emit(request, lowest, tap, None, [], [])


@kernel("AVERAGE_POOL_2D", "int8", "int16", schedules=pool_schedules)
def emit_average_pool(request: KernelRequest) -> LayerCode:
    """Emit the average of a window; padding does not count, nor in the divisor."""
    window = window_of(request)
    area = window.size[0] * window.size[1]

    def tap(n: int) -> str:
        return f"s{n} += from[{n}];"

    ties_up = request.op.attributes.ties_up
    bytes_only = request.op.output.dtype == np.int8
    exact = bytes_only and all(has_reciprocal(count) for count in range(1, area + 1))
    # cores with the long multiply have a divider too
    if not exact or (not window.whole and request.core.has("mull")):
        count = [f"const int32_t count = {_count(window)};"]
        return _emit(
            request, "0", tap, "average(s{}, count)".format, count, [_UP if ties_up else _DIVIDING]
        )
    if window.whole:
        function = (
            "static inline int32_t average(int32_t sum)\n{\n"
            f"    uint32_t t = (uint32_t)(sum + {'' if area % 2 or ties_up else '(sum >> 31) + '}"
            f"{area // 2 + 128 * area}); {SIGN_SHIFTED}\n"
            f"    return (int32_t)((t * {_reciprocal(area)}u) >> {_BITS}) - 128;\n}}\n"
        )
        return _emit(request, "0", tap, "average(s{})".format, [], [function])
    table = c_array(
        "reciprocals",
        np.array([0, *(_reciprocal(n) for n in range(1, area + 1))], np.uint32),
        "2**24 by the number of pixels",
    )
    count = [
        f"const int32_t count = {_count(window)};",
        "const int32_t offset = count / 2 + 128 * count, "
        f"even = {'0' if ties_up else '(count & 1) - 1'};",
        "const uint32_t reciprocal = reciprocals[count];",
    ]
    average = "average(s{}, offset, even, reciprocal)".format
    return _emit(request, "0", tap, average, count, [table, _CUT])


def has_reciprocal(count: int) -> bool:
    """Return whether multiplying by the reciprocal is exact for every sum of ``count`` bytes."""
    if count > 1 << 12:
        return False
    sums = np.arange(-128 * count, 127 * count + 1, dtype=np.int64)
    t = sums + count // 2 + 128 * count - ((sums < 0) & (count % 2 == 0))
    product = t * _reciprocal(count)
    wanted = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    up = sums + count // 2 + 128 * count
    return (
        bool(product.max() < 1 << 32)
        and bool(((product >> _BITS) - 128 == wanted).all())
        and bool((up * _reciprocal(count) >> _BITS == up // count).all())
    )


def _reciprocal(count: int) -> int:
    return -(-(1 << _BITS) // count)


_DIVIDING = """\
static inline int32_t average(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}
"""
_UP = """\
static inline int32_t average(int32_t sum, int32_t count)
{
    return (sum + 128 * count + count / 2) / count - 128;
}
"""
_CUT = f"""\
static inline int32_t average(int32_t sum, int32_t offset, int32_t even, uint32_t reciprocal)
{{
    uint32_t t = (uint32_t)(sum + ((sum >> 31) & even) + offset); {SIGN_SHIFTED}
    return (int32_t)((t * reciprocal) >> {_BITS}) - 128;
}}
"""


def window_of(request: KernelRequest) -> Window:
    """Return the windows of a pool of images."""
    op, a = request.op, request.op.attributes
    return Window(op.input(0).shape, op.output.shape, a.filter, a.stride, a.padding)


def _count(window: Window) -> str:
    if window.whole:
        return str(window.size[0] * window.size[1])
    return "(last_row - first_row) * (last_column - first_column)"


def _emit(
    request: KernelRequest,
    start: str,
    tap: Callable[[int], str],
    result: Callable[[int], str] | None,
    before: list[str],
    definitions: list[str],
) -> LayerCode:
    """Emit the loops over pixels and channels.

    Args:
        start: first value of the variable ``s<n>`` of channel n.
        tap: statement that adds ``from[n]`` to channel n.
        result: expression of channel n's result, where that is not its variable.
        before: statements before the loop over channels.
        definitions: C functions and tables.
    """
    op, window = request.op, window_of(request)
    channels = op.output.shape[3]
    schedule = request.choose(pool_schedules)
    together = schedule["channels"]
    numbers = range(together)
    out = op.output
    limits = activation_range(op.attributes.activation, out.scale, out.zero_point, out.dtype)
    # neither an average nor a maximum leaves the range of its elements
    info, element = np.iinfo(out.dtype), c_type(out.dtype)
    clamped = limits != (info.min, info.max)
    writes = []
    for n in numbers:
        if result is not None:
            writes.append(f"s{n} = {result(n)};")
        if clamped:
            writes.append(clamp(request.core, f"s{n}", *limits))
        writes.append(f"output[c + {n}] = ({element})s{n};")
    pixel = [
        *before,
        f"for (int32_t c = 0; c < {channels}; c += {together}) {{",
        f"    int32_t {', '.join(f's{n} = {start}' for n in numbers)};",
        indent(window.walk(element, "c", [tap(n) for n in numbers])),
        indent(writes),
        "}",
    ]
    includes = [clamp_includes(request.core, *limits)] if clamped else []
    return Operands.of(op).layer(
        request,
        window.loops(pixel, element),
        definitions,
        includes,
        schedule=str(schedule),
    )


@kernel("AVERAGE_POOL_2D", "float32")
@kernel("MAX_POOL_2D", "float32")
def emit_float_pool(request: KernelRequest) -> LayerCode:
    """Emit a float pool whose windows are clipped at the border of the image."""
    op, a = request.op, request.op.attributes
    channels = op.output.shape[3]
    together = next(n for n in (4, 3, 2, 1) if channels % n == 0)
    window = Window(op.input(0).shape, op.output.shape, a.filter, a.stride, a.padding)
    names = [f"s{n}" for n in range(together)]
    if op.kind == "AVERAGE_POOL_2D":
        start, results = "0.0f", [f"{s} / count" for s in names]
        taps = [f"{s} += from[{n}];" for n, s in enumerate(names)]
    else:
        start, results = c_float(float(np.finfo(np.float32).min)), names
        taps = [f"{s} = from[{n}] > {s} ? from[{n}] : {s};" for n, s in enumerate(names)]
    pixel = [
        *(_float_count(window) if op.kind == "AVERAGE_POOL_2D" else []),
        f"for (int32_t c = 0; c < {channels}; c += {together}) {{",
        f"    float {', '.join(f'{s} = {start}' for s in names)};",
        indent(window.walk("float", "c", taps)),
        *(f"    output[c + {n}] = activate({result});" for n, result in enumerate(results)),
        "}",
    ]
    clamp = float_clamp("result", a.activation)
    activate = f"static inline float activate(float result)\n{{\n{clamp}    return result;\n}}\n"
    schedule = f"{together} channels at once"
    body = window.loops(pixel, "float")
    return Operands.of(op).layer(request, body, [activate], schedule=schedule)


def _float_count(window: Window) -> list[str]:
    if window.whole:
        return [f"const float count = {window.size[0] * window.size[1]}.0f;"]
    rows, columns = "last_row - first_row", "last_column - first_column"
    return [f"float count = (float)(({rows}) * ({columns}));"]
