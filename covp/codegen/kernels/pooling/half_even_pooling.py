"""int8 AVERAGE_POOL_2D in onnxruntime's arithmetic.

onnxruntime adds up dequantized float32 values one by one, divides by their count and by the
output's scale. But for those roundings the result is one linear step of the sum of the bytes::

    t = sum * factor + constant        the zero points, half a level and a window in the constant
    output = clamp(t >> s)             unless t mod 2**s is in the window

In the window, and in exact ties (a quarter of all sums of 2x2 pixels of equal scales), ``exact``
makes the additions and divisions of float32, on integers where the core has no unit for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covp.codegen.c_text import c_array, c_float, indent
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pooling.pooling import pool_schedules, window_of
from covp.codegen.kernels.requantize.half_even_ties import ties_text
from covp.codegen.kernels.requantize.requantize_half_even import QUOTIENT, ROUNDING, mantissa
from covp.codegen.kernels.window import Window
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.errors import ModelError
from covp.graph.float_scaling import dequantize
from covp.graph.graph import Op
from covp.graph.ops.half_even import offset_of
from covp.graph.quantization import activation_range

_FINEST, _COARSEST = 22, 12
_MOST = 1 << 11
"""Pixels of a window: more leave no room for a quotient of 24 bits."""


@dataclass(frozen=True)
class _Step:
    """The linear step of windows of ``count`` pixels."""

    factor: int
    constant: int
    window: int


@kernel("AVERAGE_POOL_2D", "int8", schedules=pool_schedules, rule="half even")
def emit_half_even_average(request: KernelRequest) -> LayerCode:
    """Emit the linear step, several channels together."""
    op, window, schedule = request.op, window_of(request), request.choose(pool_schedules)
    together = schedule["channels"]
    area = window.size[0] * window.size[1]
    if area > _MOST:
        raise ModelError(f"{op.name}: averages over {area} pixels; at most {_MOST} are supported")
    shift = _shift(op, area)
    steps = [_step(op, count, shift) for count in range(1, area + 1)]
    limits = activation_range(
        op.attributes.activation, op.output.scale, op.output.zero_point, op.output.dtype
    )
    tables, place, arguments = "", [f"const int8_t *corner = image + {_corner(window)};"], ""
    if not window.whole:
        values = np.array([[0, 0], *([s.factor, s.constant] for s in steps)], np.int64)
        tables = c_array("steps", values.astype(np.int32), "per count: factor, constant")
        place += [
            "const int32_t rows = last_row - first_row, columns = last_column - first_column;",
            "const int32_t *step = steps + 2 * (rows * columns);",
        ]
        arguments = ", rows, columns, step"
    pixel = [
        *place,
        f"for (int32_t c = 0; c < {op.output.shape[3]}; c += {together}) {{",
        f"    int32_t {', '.join(f's{n} = 0' for n in range(together))};",
        indent(window.walk("int8_t", "c", [f"s{n} += from[{n}];" for n in range(together)])),
        indent(
            [
                f"output[c + {n}] = (int8_t)average(s{n}, corner + c + {n}{arguments});"
                for n in range(together)
            ]
        ),
        "}",
    ]
    functions = [tables, *_exact_functions(request, window)]
    functions.append(_average(request, window, steps, shift, limits))
    return Operands.of(op).layer(
        request,
        window.loops(pixel, "int8_t"),
        [text for text in functions if text],
        [clamp_includes(request.core, *limits)],
        schedule=str(schedule),
    )


def _shift(op: Op, area: int) -> int:
    """Return the largest shift s whose levels fit 32 bits."""
    levels = 255 * op.input(0).scale / op.output.scale + 130
    shift = min(_FINEST, 30 - int(np.ceil(np.log2(levels))))
    if shift < _COARSEST:
        raise ModelError(f"{op.name}: its scales are too far apart; quantize the model again")
    return shift


def _step(op: Op, count: int, shift: int) -> _Step:
    factor = round(op.input(0).scale / (op.output.scale * count) * 2.0**shift)
    # roundings of float32, as large as they are where outputs saturate; then the factor's
    roundings = (count + 6) * 2 ** max(shift - 14, 0)
    window = min(roundings + 128 * count + 2, (1 << (shift - 1)) - 1)
    zero = (2 * op.output.zero_point + 1) << shift >> 1
    return _Step(factor, zero - op.input(0).zero_point * count * factor + window, window)


def _corner(window: Window) -> str:
    """Return the C index of the first pixel of a window that is inside the image."""
    _, _, width, channels = window.source
    if window.whole:
        return f"(top * {width} + left) * {channels}"
    return f"((top + first_row) * {width} + left + first_column) * {channels}"


def _average(
    request: KernelRequest, window: Window, steps: list[_Step], s: int, limits: tuple[int, int]
) -> str:
    sizes, parameters = "", ""
    factor, constant = f"{steps[-1].factor}u", f"{steps[-1].constant % (1 << 32)}u"
    if not window.whole:
        sizes = ", rows, columns"
        parameters = ", int32_t rows, int32_t columns, const int32_t *step"
        factor, constant = "(uint32_t)step[0]", "(uint32_t)step[1]"
    widest = 2 * max(step.window for step in steps)
    limit = min(widest << (32 - s), (1 << 32) - 1)
    return (
        "static inline int32_t average(int32_t sum, const int8_t *corner"
        f"{parameters})\n{{\n"
        f"    int32_t t = (int32_t)((uint32_t)sum * {factor} + {constant});\n"
        f"    int32_t result = t >> {s};\n"
        f"    if (__builtin_expect((uint32_t)t << {32 - s} < {limit}u, 0))\n"
        f"        result = exact(corner{sizes});\n"
        f"    {clamp(request.core, 'result', *limits)}\n"
        "    return result;\n}\n"
    )


def _exact_functions(request: KernelRequest, window: Window) -> list[str]:
    """Emit ``exact``, which computes the level before the clamp from the window's pixels."""
    op = request.op
    if request.core.has("fpu"):
        return [_exact_in_float(op, window)]
    area = window.size[0] * window.size[1]
    loops, parameters = _taps(window, "{tap}"), _parameters(window)
    ties = None
    if not op.rounding.by_columns:
        ties = ties_text(op, area, _count(window), offset_of(op), loops, parameters)
    if ties is not None:
        return [ties]
    return [ROUNDING, QUOTIENT, _exact(op, window)]


def _parameters(window: Window) -> str:
    return "const int8_t *from" + ("" if window.whole else ", int32_t rows, int32_t columns")


def _taps(window: Window, statement: str) -> str:
    """Return C loops over the bytes of a window's channel, each in ``value``."""
    _, _, width, channels = window.source
    rows, columns = (str(n) for n in window.size) if window.whole else ("rows", "columns")
    return f"""\
    for (int32_t y = 0; y < {rows}; y++, from += {width * channels})
        for (int32_t x = 0; x < {columns}; x++) {{{{
            int32_t value = from[x * {channels}];
            {statement}
        }}}}"""


def _sums(op: Op, window: Window, total: str, sum_of: str, term: str) -> str:
    """Return C statements that add each byte's ``term`` up in the order of float32's additions.

    Args:
        op: of the layer.
        window: its windows.
        total: C type of the sum, which is called ``total`` and is 0 before.
        sum_of: C expression of two terms' sum.
        term: C expression of ``value``.
    """
    if not op.rounding.by_columns:
        return _taps(window, f"total = {sum_of.format('total', term)};").format()
    _, _, width, channels = window.source
    rows, columns = (str(n) for n in window.size) if window.whole else ("rows", "columns")
    return f"""\
    for (int32_t x = 0; x < {columns}; x++, from += {channels}) {{
        {total} column = 0;
        for (int32_t y = 0; y < {rows}; y++) {{
            int32_t value = from[y * {width * channels}];
            column = {sum_of.format("column", term)};
        }}
        total = {sum_of.format("total", "column")};
    }}"""


def _exact_in_float(op: Op, window: Window) -> str:
    """Return the same for a core with a floating-point unit.

    Dequantized bytes come from a table: a product that is added would be fused with the sum.
    """
    offset, every = offset_of(op), np.arange(256, dtype=np.uint8).view(np.int8)
    values = dequantize(every, op.input(0).scale, op.input(0).zero_point)
    return (
        c_array("dequantized", values, "the value of each byte")
        + f"""\
static __attribute__((noinline)) int32_t exact({_parameters(window)})
{{
    float total = 0.0f;
{_sums(op, window, "float", "{} + {}", "dequantized[(uint8_t)value]")}
    float level = total / (float)({_count(window)}) / {c_float(op.output.scale)};
    level += {c_float(op.output.zero_point + offset)};
    level = level < -1024.0f ? -1024.0f : level;
    level = level > 1024.0f ? 1024.0f : level;
    union {{ float value; int32_t bits; }} sum = {{level + 12582912.0f}};
    return sum.bits - 0x4b400000 - {offset};
}}
"""
    )


def _count(window: Window) -> str:
    """Return the C expression of the pixels of a window."""
    return str(window.size[0] * window.size[1]) if window.whole else "rows * columns"


def _by_count(window: Window) -> str:
    """Return the C statement: the mean of the sum, times 2**21, in 24 bits; at least 2**43."""
    area = window.size[0] * window.size[1]
    if window.whole and area & (area - 1) == 0:  # a power of two: nothing to round
        return f"    magnitude <<= {21 - area.bit_length() + 1};"
    return f"    magnitude = quotient_24(magnitude << 20, (uint64_t)({_count(window)}));"


def _exact(op: Op, window: Window) -> str:
    """Return C text of ``exact``: the level before the clamp, from the corner's pixels.

    Sums are in units of the last bit of the input's scale; levels in units of 2**-30.
    """
    m_in, e_in = mantissa(op.input(0).scale)
    m_out, e_out = mantissa(op.output.scale)
    offset = offset_of(op)
    zero = op.output.zero_point + offset
    term = f"part(value - ({op.input(0).zero_point}))"
    return f"""\
static inline int64_t signed_24(int64_t value)
{{
    uint64_t magnitude = to_24_bits((uint64_t)(value < 0 ? -value : value));
    return value < 0 ? -(int64_t)magnitude : (int64_t)magnitude;
}}

/* a dequantized byte */
static inline int64_t part(int32_t x)
{{
    uint32_t value = (uint32_t)(x < 0 ? -x : x) * {m_in}u;
    if (value >> 24) {{
        int32_t excess = 8 - __builtin_clz(value);
        uint32_t half = (1u << (excess - 1)) - 1;
        uint64_t sum = (uint64_t)value + half + ((value >> excess) & 1);
        value = (uint32_t)(sum >> excess) << excess;
    }}
    return x < 0 ? -(int64_t)value : (int64_t)value;
}}

static __attribute__((noinline)) int32_t exact({_parameters(window)})
{{
    int64_t total = 0;
{_sums(op, window, "int64_t", "signed_24({} + {})", term)}
    uint64_t magnitude = (uint64_t)(total < 0 ? -total : total);
    if (magnitude == 0)
        return {op.output.zero_point};
{_by_count(window)}
    int32_t bits = __builtin_clz((uint32_t)(magnitude >> 32)) - 1;
    magnitude <<= bits;
    bits += {e_out - e_in - 8};
    magnitude = quotient_24(magnitude, {m_out}u);
    if (bits < -8)
        magnitude = 1ULL << 45;
    else
        magnitude = bits < 0 ? magnitude << -bits : bits > 63 ? 0 : magnitude >> bits;
    int64_t level = (total < 0 ? -(int64_t)magnitude : (int64_t)magnitude) + ({zero << 30}LL);
    magnitude = rounded(to_24_bits((uint64_t)(level < 0 ? -level : level)), 30);
    return (level < 0 ? -(int32_t)magnitude : (int32_t)magnitude) - {offset};
}}
"""
