"""float32's roundings on integers in C: sums, products and quotients of 24 bits."""

from __future__ import annotations

import numpy as np

ROUNDING = """\
/* value / 2**bits, half to even */
static inline uint64_t rounded(uint64_t value, int32_t bits)
{
    return (value + ((1ULL << (bits - 1)) - 1) + ((value >> bits) & 1)) >> bits;
}

static inline uint64_t to_24_bits(uint64_t value)
{
    uint32_t high = (uint32_t)(value >> 32), low = (uint32_t)value;
    if (high == 0 && low >> 24 == 0)
        return value;
    int32_t excess = high ? 40 - __builtin_clz(high) : 8 - __builtin_clz(low);
    return rounded(value, excess) << excess;
}
"""
QUOTIENT = """\
/* 2 * a / b in 24 bits; the lowest bit of a longer quotient stands for the remainder */
static inline uint64_t quotient_24(uint64_t a, uint64_t b)
{
    uint64_t whole = a / b;
    return to_24_bits(whole << 1 | (whole * b != a));
}
"""


def mantissa(value: float) -> tuple[int, int]:
    """Return a positive float32 as (m, e): value = m * 2**e, m in [2**23, 2**24)."""
    fraction, exponent = np.frexp(np.float64(np.float32(value)))
    return int(fraction * (1 << 24)), int(exponent) - 24
