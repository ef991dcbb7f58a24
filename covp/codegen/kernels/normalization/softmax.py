"""SOFTMAX of int8 and int16: exponentials from a table, the rest in fixed point as TFLM does it."""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array, c_type
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.requantize_half_even import ROUNDING
from covp.codegen.kernels.requantize.scaling import scale_function
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel, prototype
from covp.codegen.schedule import KnobSpace, Schedule, valid_schedules
from covp.errors import ModelError
from covp.graph.ops.half_even import exponentials as half_even_exponentials
from covp.graph.ops.half_even import softmax_steps
from covp.graph.ops.int16 import exponential_table, reciprocal_table, softmax_factor
from covp.graph.ops.softmax import SUM_BITS, check_depth, exponentials

LOOKUP = """\
static inline int32_t lookup(const int16_t *table, int32_t index)
{
    index = index < -32768 ? -32768 : index;
    index = index > 32767 ? 32767 : index;
    const int16_t *at = table + 256 + (index >> 7);
    return at[0] + (((at[1] - at[0]) * (index & 127) + 64) >> 7);
}
"""
_BODY_INT16 = Template("""\
for (int32_t row = 0; row < $rows; row++, input += $depth, output += $depth) {
    int32_t most = -32768;
    for (int32_t i = 0; i < $depth; i++)
        most = input[i] > most ? input[i] : most;
    uint32_t sum = 0;
    for (int32_t i = 0; i < $depth; i++) {
        int32_t power = lookup(exponentials, scale(input[i] - most) + 32767);
        output[i] = (int16_t)power;
        sum += (uint32_t)power;
    }
    int32_t bits = 15;
    while (bits < 32 && sum >> bits)
        bits++;
    sum = bits > 17 ? (sum + (1u << (bits - 18))) >> (bits - 17) : sum << (17 - bits);
    int32_t reciprocal = lookup(reciprocals, (int32_t)sum - 98304);
    for (int32_t i = 0; i < $depth; i++) {
        int32_t result = (output[i] * reciprocal + (1 << (bits - 2))) >> (bits - 1);
        output[i] = (int16_t)(result > 32767 ? 32767 : result);
    }
}
""")


@kernel("SOFTMAX", "int16")
def emit_softmax16(request: KernelRequest) -> LayerCode:
    """Emit loops row by row; the output holds the exponentials until their sum is known."""
    op = request.op
    depth = op.input(0).shape[-1]
    definitions = [
        c_array("exponentials", exponential_table().astype(np.int16), "exp of -10 to 0"),
        c_array("reciprocals", reciprocal_table().astype(np.int16), "1 / (1 + x), x from 0 to 1"),
        LOOKUP,
        scale_function(request.core, "scale", softmax_factor(op), 1 << 16),
    ]
    body = _BODY_INT16.substitute(rows=op.output.size // depth, depth=depth).rstrip().split("\n")
    return Operands.of(op).layer(request, body, definitions, in_place=[op.input(0)])


_UNIT = 9
"""The largest exponential's 24 bits are shifted left by this."""


def _schedules(request: KernelRequest) -> list[Schedule]:
    return [Schedule("float24")]


@kernel("SOFTMAX", "int8", schedules=_schedules, rule="half even")
def emit_half_even_softmax(request: KernelRequest) -> LayerCode:
    """Emit the C of the layer, row by row."""
    op = request.op
    depth, out = op.input(0).shape[-1], op.output
    table, steps = half_even_exponentials(op), int(softmax_steps(op))
    if steps.bit_length() + 24 + _UNIT > 63 or depth > 1 << 20:
        raise ModelError(f"{op.name}: SOFTMAX with an output scale of {out.scale}; use 1/256")
    text = Template(_FUNCTIONS).substitute(
        unit=_UNIT - int(table[:1].view(np.uint32)[0] >> 23), steps=steps
    )
    zero = out.zero_point
    body = [
        f"for (int32_t row = 0; row < {out.size // depth}; row++) {{",
        "    int32_t most = -128;",
        f"    for (int32_t i = 0; i < {depth}; i++)",
        "        most = input[i] > most ? input[i] : most;",
        "    uint64_t sum = 0;",
        f"    for (int32_t i = 0; i < {depth}; i++)",
        "        sum = to_24_bits(sum + power(most - input[i]));",
        f"    for (int32_t i = 0; i < {depth}; i++) {{",
        f"        int32_t result = share(power(most - input[i]), sum) + ({zero});",
        "        output[i] = (int8_t)(result > 127 ? 127 : result);",
        "    }",
        f"    input += {depth};",
        f"    output += {depth};",
        "}",
    ]
    constants = c_array("powers", table.view(np.uint32), "exp of 0 ... 255 steps down, as bits")
    return Operands.of(op).layer(
        request, body, [constants, ROUNDING, text], [], [op.input(0)], "float24"
    )


_FUNCTIONS = """\
static inline uint64_t power(int32_t distance)
{
    uint32_t bits = powers[distance];
    uint64_t value = (bits & 0x7fffff) | 0x800000;
    int32_t shift = (int32_t)(bits >> 23) + ($unit);
    if (shift >= 0)
        return value << shift;
    /* less than the unit: nothing but not zero */
    return shift < -24 ? 1 : value >> -shift | 1;
}

static inline int32_t share(uint64_t power, uint64_t sum)
{
    uint64_t product = power * ${steps}u, level = product / sum;
    uint64_t rest = product - level * sum, other = sum - rest;
    return (int32_t)(level + (rest > other || (rest == other && level & 1)));
}
"""


def softmax_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the exponentials of the second pass: looked up again or kept; the default first."""
    spaces = [KnobSpace("table", {}), KnobSpace("kept", {})]
    return valid_schedules(spaces, Schedule("table"), lambda s: True)


@kernel("SOFTMAX", "int8", schedules=softmax_schedules)
def emit_softmax(request: KernelRequest) -> LayerCode:
    """Emit loops row by row; a table holds exp of each distance from the row's maximum."""
    op = request.op
    check_depth(op)  # else the sum may become 0 and its normalization endless
    depth, info = op.input(0).shape[-1], np.iinfo(op.output.dtype)
    schedule = request.choose(softmax_schedules)
    arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
    first = second = "powers[most - input[i]]"
    if schedule.tile == "kept":
        arguments["scratch"] = Scratch(4 * depth)
        first, second = f"(kept[i] = {first})", "kept[i]"
    table = c_array("powers", exponentials(op).astype(np.int32), "exp of 0 ... 255 steps down")
    source = "\n".join(
        [
            request.headline,
            "#include <stdint.h>",
            "",
            table,
            RECIPROCAL,
            prototype(request.function, op, arguments),
            _BODY.substitute(
                kept="int32_t *kept = scratch;" if schedule.tile == "kept" else "",
                first=first,
                second=second,
                rows=op.output.size // depth,
                depth=depth,
                flat=FLAT if depth > MOST_IN_A_SHIFT else "",
                half=1 << (SUM_BITS - 1),
                bits=SUM_BITS,
                # RoundingDivideByPOT's exponent without the leading zeros
                exponent=SUM_BITS + 31 - 8 * op.output.dtype.itemsize,
                lowest=-info.min,
                most=info.max,
                type=c_type(op.output.dtype),
            ),
        ]
    )
    in_place = (op.input(0),) if op.output.dtype == op.input(0).dtype else ()
    return LayerCode(op, request.function, source, arguments, in_place, str(schedule))


# gemmlowp's one_over_one_plus_x_for_x_in_0_1: three Newton-Raphson steps
RECIPROCAL = """\
static int32_t high_multiply(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

static int32_t saturated_shift(int32_t value, int32_t bits)
{
    int32_t most = INT32_MAX >> bits;
    if (value > most)
        return INT32_MAX;
    return value < -most - 1 ? INT32_MIN : (int32_t)((uint32_t)value << bits);
}

static int32_t reciprocal(uint32_t fraction)
{
    int32_t half_denominator = (int32_t)((fraction + 0x80000000u) >> 1);
    int32_t x = 1515870810 + high_multiply(half_denominator, -1010580540);
    for (int32_t i = 0; i < 3; i++) {
        int32_t error = (1 << 29) - high_multiply(half_denominator, x);
        x += saturated_shift(high_multiply(x, error), 2);
    }
    return saturated_shift(x, 1);
}
"""
# rows of more equal values than this are divided by 2**32 and more, which TFLM leaves undefined:
# each result is less than half a step
MOST_IN_A_SHIFT = 511
FLAT = "if (exponent > 31) { scale = 0; exponent = 31; }"
_BODY = Template("""\
{
    $kept
    for (int32_t row = 0; row < $rows; row++, input += $depth, output += $depth) {
        int32_t most = -128;
        for (int32_t i = 0; i < $depth; i++)
            most = input[i] > most ? input[i] : most;
        uint32_t sum = 0;
        for (int32_t i = 0; i < $depth; i++)
            sum += ((uint32_t)$first + ${half}u) >> $bits;
        int32_t zeros = 0;
        while (!(sum & 0x80000000u)) {
            sum <<= 1;
            zeros++;
        }
        int32_t scale = reciprocal(sum - 0x80000000u);
        int32_t exponent = $exponent - zeros;
        $flat
        for (int32_t i = 0; i < $depth; i++) {
            int32_t high = high_multiply(scale, $second);
            int32_t result = (high >> exponent) + ((high >> (exponent - 1)) & 1) - $lowest;
            output[i] = ($type)(result > $most ? $most : result);
        }
    }
}
""")
