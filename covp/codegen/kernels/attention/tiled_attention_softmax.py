"""The softmax of one row of scores inside attention, with TFLM's integers.

All weights of a row are a function of the distance from its maximum, and most distances give 0:
where that holds, the weights of a row are looked up in a table of those that are not 0, which is
shorter than the row.
"""

from __future__ import annotations

from string import Template

import numpy as np

from covp.chip.cores import Core
from covp.codegen.c_text import c_array
from covp.codegen.kernels.attention.tiled_attention_products import Products
from covp.codegen.kernels.normalization.softmax import FLAT, MOST_IN_A_SHIFT, RECIPROCAL
from covp.graph.ops.softmax import SUM_BITS, check_depth, exponentials
from covp.graph.ops.tiled_attention import TiledAttention


def softmax_functions(core: Core, attention: TiledAttention, products: Products) -> list[str]:
    """Return C text of ``soften(codes, weights, table)``: a row of codes to weights (plus 128)."""
    op = attention.softmax
    check_depth(op)
    powers = exponentials(op)
    keys = attention.shape.keys
    # at most powers / 2**31 of the whole: less than a quarter of a step of 1/256 is surely 0
    reach = int(np.count_nonzero(powers >= 1 << 21))
    tabled = reach <= keys and bool((np.diff(powers) <= 0).all())
    return [
        c_array("powers", np.append(powers, 0).astype(np.int32), "exp of 0 ... 255 steps down"),
        c_array(
            "terms", ((powers + (1 << (SUM_BITS - 1))) >> SUM_BITS).astype(np.int32), "of the sum"
        ),
        RECIPROCAL,
        _SOFTEN.substitute(
            keys=keys,
            whole=keys // 4 * 4,
            weight=products.weight_type,
            flat=FLAT if keys > MOST_IN_A_SHIFT else "",
            # RoundingDivideByPOT's exponent without the leading zeros
            exponent=SUM_BITS + 31 - 8,
            least=Template(products.least or _LEAST).substitute(keys=keys, words=keys // 4),
            write=Template(_TABLED if tabled else _DIRECT).substitute(
                keys=keys,
                whole=keys // 4 * 4,
                weight=products.weight_type,
                store=_STORE_WORDS if core.has("dsp") else _STORE,
            ),
        ),
    ]


_SOFTEN = Template("""\
/* high_multiply(scale, power) / 2**(shift + 1), rounded: with both roundings in the offset */
static inline int32_t weight(int32_t power, int32_t scale, int64_t offset, int32_t shift)
{
    return (int32_t)(((int64_t)scale * power + offset) >> 32) >> shift;
}

/* loads that wait for nothing, in a row */
#define FOUR_CODES \\
    uint32_t a = codes[i], b = codes[i + 1], c = codes[i + 2], d = codes[i + 3]; \\
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d))

static __attribute__((noinline)) void soften(const uint8_t *codes, $weight *weights, uint8_t *table)
{
    uint32_t least = 255;
$least
    uint32_t sum = 0;
    const int32_t *from = (const int32_t *)((uintptr_t)terms - 4u * least);
    for (int32_t i = 0; i < $whole; i += 4) {
        FOUR_CODES;
        sum += (uint32_t)from[a] + (uint32_t)from[b] + (uint32_t)from[c] + (uint32_t)from[d];
    }
    for (int32_t i = $whole; i < $keys; i++)
        sum += (uint32_t)from[codes[i]];
    int32_t zeros = 0;
    while (!(sum & 0x80000000u)) {
        sum <<= 1;
        zeros++;
    }
    int32_t scale = reciprocal(sum - 0x80000000u);
    int32_t exponent = $exponent - zeros;
    $flat
    int32_t shift = exponent - 1;
    int64_t offset = (1 << 30) + ((int64_t)1 << (30 + exponent));
$write
}
""")
_LEAST = """\
#pragma GCC unroll 4
    for (int32_t i = 0; i < $keys; i++)
        least = codes[i] < least ? codes[i] : least;"""
# the two bytes after the table bound the weights of the row before that are not 0
_TABLED = """\
    uint8_t *last = table + 256;
    for (uint32_t i = last[0] / 4u, end = last[1] / 4u; i <= end; i++)
        ((word *)(void *)table)[i] = 0;
    const int32_t *power = powers;
    uint32_t at = least;
    int32_t next = weight(*power, scale, offset, shift);
    for (; next > 255 && at < 256; next = weight(*++power, scale, offset, shift))
        table[at++] = 255;
    for (; next && at < 256; next = weight(*++power, scale, offset, shift))
        table[at++] = (uint8_t)next;
    last[0] = (uint8_t)least;
    last[1] = (uint8_t)(at - 1);
    for (int32_t i = 0; i < $whole; i += 4) {
        FOUR_CODES;
        $store
    }
    for (int32_t i = $whole; i < $keys; i++)
        weights[i] = ($weight)table[codes[i]];"""
_DIRECT = """\
    (void)table;
    for (int32_t i = 0; i < $keys; i++) {
        int32_t next = weight(powers[codes[i] - least], scale, offset, shift);
        weights[i] = ($weight)(next > 255 ? 255 : next);
    }"""
_STORE = """\
weights[i] = table[a]; weights[i + 1] = table[b];
        weights[i + 2] = table[c]; weights[i + 3] = table[d];"""
# where OR shifts its operand for nothing
_STORE_WORDS = """\
((word *)(void *)weights)[i / 2] = table[a] | (uint32_t)table[b] << 16;
        ((word *)(void *)weights)[i / 2 + 1] = table[c] | (uint32_t)table[d] << 16;"""
