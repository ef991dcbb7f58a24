"""The softmax of one row of scores inside attention, with TFLM's integers.

All weights of a row are a function of the distance from its maximum, and most distances give 0:
where that holds, the weights of a row are looked up in a table of those that are not 0, which is
shorter than the row.
"""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.softmax import FLAT, MOST_IN_A_SHIFT, RECIPROCAL
from covp.codegen.kernels.tiled_attention_products import Products
from covp.graph.ops.softmax import SUM_BITS, check_depth, exponentials
from covp.graph.ops.tiled_attention import TiledAttention


def softmax_functions(attention: TiledAttention, products: Products) -> list[str]:
    """C text of ``soften(codes, weights, table)``: a row of codes to weights (plus 128)."""
    op = attention.softmax
    check_depth(op)
    powers = exponentials(op)
    keys = attention.shape.keys
    # at most powers / 2**31 of the whole: less than a quarter of a step of 1/256 is surely 0
    reach = int(np.count_nonzero(powers >= 1 << 21))
    tabled = reach <= keys and bool((np.diff(powers) <= 0).all())
    return [
        c_array("powers", powers.astype(np.int32), "exp of 0 ... 255 steps down"),
        c_array(
            "terms", ((powers + (1 << (SUM_BITS - 1))) >> SUM_BITS).astype(np.int32), "of the sum"
        ),
        RECIPROCAL,
        _SOFTEN.substitute(
            keys=keys,
            weight=products.weight_type,
            flat=FLAT if keys > MOST_IN_A_SHIFT else "",
            # RoundingDivideByPOT's exponent without the leading zeros
            exponent=SUM_BITS + 31 - 8,
            write=(_TABLED if tabled else _DIRECT).substitute(
                keys=keys, weight=products.weight_type
            ),
        ),
    ]


_SOFTEN = Template("""\
static inline int32_t weight(int32_t power, int32_t scale, int32_t exponent)
{
    int32_t high = high_multiply(scale, power);
    int32_t result = (high >> exponent) + ((high >> (exponent - 1)) & 1);
    return result > 255 ? 255 : result;
}

static void soften(const uint8_t *codes, $weight *weights, uint8_t *table)
{
    uint32_t least = 255;
    for (int32_t i = 0; i < $keys; i++)
        least = codes[i] < least ? codes[i] : least;
    uint32_t sum = 0;
    for (int32_t i = 0; i < $keys; i++)
        sum += (uint32_t)terms[codes[i] - least];
    int32_t zeros = 0;
    while (!(sum & 0x80000000u)) {
        sum <<= 1;
        zeros++;
    }
    int32_t scale = reciprocal(sum - 0x80000000u);
    int32_t exponent = $exponent - zeros;
    $flat
$write
}
""")
# table[256] is the number of weights of the row before that are not 0
_TABLED = Template("""\
    uint32_t count = 0, before = table[256];
    for (int32_t next = 1; next; count += next != 0) {
        next = count < 255 ? weight(powers[count], scale, exponent) : 0;
        table[count] = (uint8_t)next;
    }
    for (uint32_t i = count; i < before; i++)
        table[i] = 0;
    table[256] = (uint8_t)count;
    for (int32_t i = 0; i < $keys; i++)
        weights[i] = ($weight)table[codes[i] - least];""")
_DIRECT = Template("""\
    (void)table;
    for (int32_t i = 0; i < $keys; i++)
        weights[i] = ($weight)weight(powers[codes[i] - least], scale, exponent);""")
