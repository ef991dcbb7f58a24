"""int8 SOFTMAX in onnxruntime's arithmetic: a table of float32 exponentials, on integers.

Exponentials are kept as float32 bits and read as integers whose unit is 2**-32 of the largest one.
Sums are rounded to 24 bits as float32 is; what is below the unit counts for rounding only, so that
results differ from float32's in one of some 10**7 at most. onnxruntime multiplies and divides in
double precision: a product of 24 and 30 bits over a sum of 24 comes that near to half-way between
two levels only where it is there, so a division of integers with its remainder gives the same.
"""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.requantize_half_even import ROUNDING
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import Schedule
from covp.errors import ModelError
from covp.graph.ops.half_even import exponentials, softmax_steps

_UNIT = 9
"""The largest exponential's 24 bits are shifted left by this."""


def _schedules(request: KernelRequest) -> list[Schedule]:
    return [Schedule("float24")]


@kernel("SOFTMAX", "int8", schedules=_schedules, rule="half even")
def emit_half_even_softmax(request: KernelRequest) -> LayerCode:
    """Emit the C of the layer, row by row."""
    op = request.op
    depth, out = op.input(0).shape[-1], op.output
    table, steps = exponentials(op), int(softmax_steps(op))
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
