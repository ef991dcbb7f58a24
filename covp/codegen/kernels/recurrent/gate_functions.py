"""sigmoid and tanh of an LSTM's integer gates in C; `covp.graph.ops.quantized_lstm` names sources.

int8 activations: gemmlowp's functions of int16 numbers, from `covp.graph.fixed_point`. Steps that
cannot saturate or be negative are written without the test; tests compare all 65536 inputs.
int16 activations: a table of 256 values of sigmoid, interpolated.
"""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array
from covp.graph.fixed_point import (
    EXP_FACTORS,
    EXP_MINUS_ONE_EIGHTH,
    FORTY_EIGHT_OVER_17,
    MINUS_32_OVER_17,
    ONE_THIRD,
    constant,
    least_exponent,
)
from covp.graph.ops.int16 import sigmoid_table
from covp.graph.ops.quantized_lstm import GATE_BITS, UNIT_BITS, QuantizedLstm


def gate_functions(numbers: QuantizedLstm) -> str:
    """Emit ``sigmoid``, ``tanh_gate`` and ``tanh_cell``, each ``int32_t f(int32_t)``."""
    if numbers.dtype == np.int16:
        return "\n".join(
            [
                c_array("sigmoids", sigmoid_table(), "sigmoid(i / 24)"),
                _TABLE_SIGMOID,
                _table_tanh("tanh_gate", -GATE_BITS),
                _table_tanh("tanh_cell", numbers.cell_power),
            ]
        )
    gate_bits, cell_bits = UNIT_BITS - GATE_BITS, UNIT_BITS + numbers.cell_power
    exponentials = sorted({gate_bits, gate_bits + 1, cell_bits + 1})
    return "\n".join(
        [
            _PRODUCT,
            *(_exponential(bits) for bits in exponentials),
            _half_reciprocal(),
            _sigmoid(gate_bits),
            _tanh("tanh_gate", gate_bits),
            _tanh("tanh_cell", cell_bits),
        ]
    )


_PRODUCT = """\
static inline int32_t times(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}
"""


def _exponential(integer_bits: int) -> str:
    """Return exp of a negative number with that many integer bits, or of 0."""
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    middle, third = constant(EXP_MINUS_ONE_EIGHTH, 16), constant(ONE_THIRD, 16)
    lines = [
        f"static int32_t exp{integer_bits}(int32_t a)",
        "{",
        f"    int32_t offset = (a & {quarter - 1}) - {quarter}, rest = offset - a;",
        f"    int32_t x = offset * {1 << integer_bits} + 4096;",
        "    int32_t x2 = times(x, x), x3 = times(x2, x), x4 = times(x2, x2);",
        f"    int32_t cubic = times(((x4 + 2) >> 2) + x3, {third});",
        f"    int32_t result = {middle} + times({middle}, x + ((cubic + x2 + 1) >> 1));",
        "    result = result > 32767 ? 32767 : result;",
    ]
    for exponent, factor in enumerate(EXP_FACTORS, start=-2):
        if integer_bits > exponent:
            bit, smaller = 1 << (fraction + exponent), constant(factor, 16)
            lines.append(f"    result = rest & {bit} ? times(result, {smaller}) : result;")
    least = least_exponent(integer_bits, 16)
    if least > -32768:
        lines.append(f"    result = a < {least} ? 0 : result;")
    return "\n".join([*lines, "    return a == 0 ? 32767 : result;", "}\n"])


def _half_reciprocal() -> str:
    """Emit half_reciprocal(a) = 2 / (1 + a) with 2 integer bits."""
    start, slope = constant(FORTY_EIGHT_OVER_17, 16), constant(MINUS_32_OVER_17, 16)
    return (
        "static int32_t half_reciprocal(int32_t a)\n{\n"
        "    int32_t half = (a + 32768) >> 1;\n"
        f"    int32_t x = {start} + times(half, {slope});\n"
        "    for (int32_t i = 0; i < 3; i++)\n"
        "        x += times(x, 8192 - times(half, x)) * 4;\n"
        "    return x;\n}\n"
    )


def _sigmoid(integer_bits: int) -> str:
    return (
        "static int32_t sigmoid(int32_t a)\n{\n"
        "    if (a == 0)\n        return 16384;\n"
        f"    int32_t x = half_reciprocal(exp{integer_bits}(a < 0 ? a : -a)) * 2;\n"
        "    x = x > 32767 ? 32767 : x;\n"
        "    return a > 0 ? x : 32767 - x;\n}\n"
    )


def _tanh(name: str, integer_bits: int) -> str:
    """Return tanh; the argument is doubled by one integer bit more."""
    return (
        f"static int32_t {name}(int32_t a)\n{{\n"
        "    if (a == 0)\n        return 0;\n"
        f"    int32_t x = (half_reciprocal(exp{integer_bits + 1}(a < 0 ? a : -a)) - 8192) * 4;\n"
        "    x = x > 32767 ? 32767 : x;\n"
        "    return a < 0 ? -x : x;\n}\n"
    )


_TABLE_SIGMOID = """\
static int32_t sigmoid(int32_t a)
{
    int32_t value = a * 3;
    uint32_t size = (uint32_t)(value < 0 ? -value : value), at = size >> 9;
    uint32_t result = 0x7fffu << 10;
    if (at < 255)
        result = ((uint32_t)sigmoids[at] << 9) + (size & 511) * (sigmoids[at + 1] - sigmoids[at]);
    result = value >= 0 ? result + (1u << 9) : (1u << 25) - result + (1u << 9) - 1;
    return (int32_t)(result >> 10);
}
"""


def _table_tanh(name: str, power: int) -> str:
    """Emit tanh(x) = 2 sigmoid(2x) - 1 of x = a * 2**power, with the table of sigmoid."""
    left = UNIT_BITS + power - 3
    value = f"a * {3 << left}" if left >= 0 else f"(a * 3 + {1 << (-left - 1)}) >> {-left}"
    return (
        f"static int32_t {name}(int32_t a)\n{{\n"
        f"    int32_t value = {value};\n"
        "    uint32_t size = (uint32_t)(value < 0 ? -value : value), at = size >> 8;\n"
        "    uint32_t sum = 0xffffu << 8;\n"
        "    if (at < 255)\n"
        "        sum = ((uint32_t)sigmoids[at] << 8)"
        " + (size & 255) * (sigmoids[at + 1] - sigmoids[at]);\n"
        "    int32_t distance = (int32_t)sum - (1 << 23);\n"
        "    return (value >= 0 ? distance + 128 : 127 - distance) >> 8;\n}\n"
    )
