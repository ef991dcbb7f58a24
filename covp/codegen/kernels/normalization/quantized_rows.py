"""int8 L2_NORMALIZATION and LOG_SOFTMAX: row by row in fixed point."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.normalization.softmax import RECIPROCAL
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.scaling import scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.quantized_rows import L2_BITS, exponentials, log_softmax_factors


def _emit(request: KernelRequest, row: list[str], definitions: list[str]) -> LayerCode:
    op = request.op
    depth = op.input(0).shape[-1]
    rows = op.output.size // depth
    head = f"for (int32_t row = 0; row < {rows}; row++, input += {depth}, output += {depth}) {{"
    return Operands.of(op).layer(
        request, [head, indent(row), "}"], definitions, in_place=[op.input(0)]
    )


@kernel("L2_NORMALIZATION", "int8")
def emit_l2_normalization(request: KernelRequest) -> LayerCode:
    """Emit the layer; the inverse root is five Newton-Raphson steps, once a row."""
    op = request.op
    depth, zero = op.input(0).shape[-1], op.input(0).zero_point
    row = [
        "int32_t squares = 0;",
        f"for (int32_t i = 0; i < {depth}; i++)",
        f"    squares += (input[i] - ({zero})) * (input[i] - ({zero}));",
        "int32_t shift;",
        "int32_t root = inverse_root((uint32_t)squares, &shift);",
        f"int32_t left = shift > 0 ? {L2_BITS} : {L2_BITS} + shift, right = left < 0 ? -left : 0;",
        "left = left < 0 ? 0 : left;",
        f"for (int32_t i = 0; i < {depth}; i++) {{",
        f"    int32_t high = high_multiply((input[i] - ({zero})) * (1 << left), root);",
        "    int32_t mask = (1 << right) - 1;",
        "    int32_t result = (high >> right) + ((high & mask) > (mask >> 1) + (high < 0));",
        "    result = result < -128 ? -128 : result;",
        "    output[i] = (int8_t)(result > 127 ? 127 : result);",
        "}",
    ]
    return _emit(request, row, [RECIPROCAL.split("static int32_t reciprocal")[0], _INVERSE_ROOT])


_INVERSE_ROOT = """\
/* 1 / sqrt(x) as a multiplier with 31 bits, times 2 to the power *shift: not positive */
static int32_t inverse_root(uint32_t x, int32_t *shift)
{
    *shift = 0;
    if (x <= 1)
        return INT32_MAX;
    int32_t right = 11;
    for (; x >= 1u << 29; x /= 4)
        right++;
    for (; x < 1u << 27; x *= 4)
        right--;
    int32_t half = ((int32_t)(x >> 1) + 1) >> 1, root = 1 << 28;
    for (int32_t i = 0; i < 5; i++) {
        int32_t cube = high_multiply(high_multiply(root, root), root);
        int32_t grown = high_multiply((1 << 28) + (1 << 27), root);
        root = saturated_shift(grown - high_multiply(half, saturated_shift(cube, 6)), 3);
    }
    root = high_multiply(root, 1518500250);
    if (right < 0)
        return (int32_t)((uint32_t)root << -right);
    *shift = -right;
    return root;
}
"""


@kernel("LOG_SOFTMAX", "int8")
def emit_log_softmax(request: KernelRequest) -> LayerCode:
    """Emit LOG_SOFTMAX: exponentials from a table, the logarithm as a rational function."""
    op = request.op
    depth, k = op.input(0).shape[-1], log_softmax_factors(op)
    powers = exponentials(op).astype(np.int32)
    row = [
        "int32_t most = -128;",
        f"for (int32_t i = 0; i < {depth}; i++)",
        "    most = input[i] > most ? input[i] : most;",
        "int32_t sum = 0;",
        f"for (int32_t i = 0; i < {depth}; i++)",
        "    sum += powers[most - input[i]];",
        "int32_t total = logarithm(sum);",
        "int32_t reach = reverse(total + INT32_MIN);",
        f"reach = reach < {k.least - 1} ? {k.least - 1} : reach;",
        f"for (int32_t i = 0; i < {depth}; i++) {{",
        "    int32_t distance = input[i] - most, result = -128;",
        "    if (distance > reach) {",
        "        int32_t value = scaled(distance) - total;",
        "        int32_t rest = value & ((1 << 22) - 1);",
        "        result = (value >> 22) + (rest > (1 << 21) - 1 + (value < 0)) + 127;",
        "        result = result < -128 ? -128 : result;",
        "    }",
        "    output[i] = (int8_t)(result > 127 ? 127 : result);",
        "}",
    ]
    scaled = scale_function(request.core, "scaled", k.factor, 255)
    reverse = scale_function(request.core, "reverse", k.reverse, 1 << 31)
    table = c_array("powers", powers, "exp of 0 ... 255 steps down, with 19 bits")
    return _emit(request, row, [table, RECIPROCAL, _LOGARITHM, scaled, reverse])


_LOGARITHM = """\
/* of a number from 1 on with 19 fraction bits; the result has 26 */
static int32_t logarithm(int32_t raw)
{
    int32_t zeros = __builtin_clz((uint32_t)raw);
    int32_t whole = (int32_t)((uint32_t)raw << (zeros - 1));
    int32_t first = saturated_shift(high_multiply(whole, 1518500250), 1);
    int32_t first_power = (12 - zeros) * (1 << 25) + (1 << 23);
    int32_t room = __builtin_clz((uint32_t)high_multiply(raw, 1518500250)) - 1;
    int32_t second = saturated_shift(raw, room);
    int32_t second_power = (12 - room) * (1 << 25) - (1 << 23);
    int32_t r = first < second ? first : second;
    int32_t power = first_power > second_power ? first_power : second_power;
    int32_t p = (int32_t)(((uint32_t)r + 1805811302u) >> 1), q = (r - 1805811301) * 2;
    int32_t square = high_multiply(q, q);
    int32_t above = high_multiply(q, r) + high_multiply(high_multiply(q, square), 117049297);
    int32_t below = high_multiply(p, 1057819769 + q + high_multiply(127690142, square));
    below += high_multiply(638450708, q);
    int32_t coarse = (above >> 6) + ((above & 63) > 31 + (above < 0));
    int32_t ratio = high_multiply(coarse, reciprocal((uint32_t)below));
    return saturated_shift(high_multiply(power, 1488522236) + ratio, 1);
}
"""
