"""int8 SOFTMAX: exponentials from a table, the rest in fixed point as TFLM does it."""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array, c_type
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel, prototype
from covp.codegen.schedule import KnobSpace, Schedule, valid_schedules
from covp.graph.ops.softmax import SUM_BITS, check_depth, exponentials


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
