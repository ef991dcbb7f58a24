"""int16 SOFTMAX: exponentials and the reciprocal of their sum by interpolation in TFLM's tables."""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.scaling import scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.int16 import exponential_table, reciprocal_table, softmax_factor

LOOKUP = """\
static inline int32_t lookup(const int16_t *table, int32_t index)
{
    index = index < -32768 ? -32768 : index;
    index = index > 32767 ? 32767 : index;
    const int16_t *at = table + 256 + (index >> 7);
    return at[0] + (((at[1] - at[0]) * (index & 127) + 64) >> 7);
}
"""
_BODY = Template("""\
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
    body = _BODY.substitute(rows=op.output.size // depth, depth=depth).rstrip().split("\n")
    return Operands.of(op).layer(request, body, definitions, in_place=[op.input(0)])
