"""Exact ties of averages in onnxruntime's arithmetic, where both scales are the same.

The average of 2, 4, 8 ... pixels of a scale s = m * U (m of 24 bits) is half-way between two levels
for one sum in so many. onnxruntime adds up float32(n * s), so what decides is by how many U its sum
is off. That error needs the lowest 32 bits of the sums only: each is rounded to a multiple of a
power of two that follows from the sum of the integers n, and with the same scale on both sides the
roundings of (sum / count) / s and of the zero point's addition follow from it.
"""

from __future__ import annotations

from string import Template

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_array
from covp.codegen.kernels.requantize.requantize_half_even import mantissa
from covp.graph.graph import Op

_MOST = 16
"""Pixels of a window: tables are for their sums."""
_NEAR = 1 << 10
"""More than any error of a sum, in units of U."""


def ties_text(
    op: Op, most: int, count: str, offset: int, loops: str, parameters: str
) -> str | None:
    """Return C text of ``int32_t exact(...)``, or None where the scales do not allow it.

    Args:
        op: AVERAGE_POOL_2D.
        most: pixels of the largest window.
        count: C expression of the pixels of the window.
        offset: by which the model's zero points are larger.
        loops: C text of the loops over a window's bytes; ``{tap}`` is the statement for ``value``.
        parameters: of the function.
    """
    scale, zero = op.input(0).scale, op.input(0).zero_point
    if scale != op.output.scale or most > _MOST:
        return None
    m, _ = mantissa(scale)
    errors, places = _errors(m, zero), _places(m, most)
    if errors.any() and _near_a_power(m, most):
        return None
    level_zero = op.output.zero_point + offset
    tap = (
        f"n += value - ({zero}); s += (uint32_t)(value - ({zero})) * {m}u"
        " + (uint32_t)errors[(uint8_t)value];"
        " bits = places[n < 0 ? -n : n];"
        " if (bits) s = ((s + (1u << (bits - 1)) - 1 + ((s >> bits) & 1)) >> bits) << bits;"
    )
    return (
        c_array("errors", errors, "of each byte's float32 product, in units of the last bit")
        + c_array("places", places, "bits that float32 cuts off a sum of so many scales")
        + Template(_EXACT).substitute(
            parameters=parameters,
            loops=loops.format(tap=tap),
            count=count,
            m=m,
            half=m // 2,
            zero=2 * level_zero,
            offset=offset,
        )
    )


_EXACT = """\
static __attribute__((noinline)) int32_t exact($parameters)
{
    int32_t n = 0;
    uint32_t s = 0, bits;
$loops
    const int32_t count = $count;
    int32_t error = (int32_t)(s - (uint32_t)n * ${m}u), power = 1;
    /* twice the level, odd, without and with the zero point */
    int32_t plain = 2 * n / count, level = plain + ($zero);
    if ((count & (count - 1)) == 0) {
        while (count >> power > 1)
            power++;
    } else {
        /* the division by the count rounds too: what it leaves is the error of half a unit */
        int32_t sign = n < 0 ? -1 : 1, half = count / 2;
        uint64_t product = (uint64_t)(uint32_t)(sign * plain) * ${m}u;
        int32_t place = 0;
        while (product >> place >> 24)
            place++;
        int32_t below = (int32_t)(product & ((1u << place) - 1)), unit = half << place;
        int32_t sum = half * below + sign * error + unit / 2 + unit * 1024;
        int32_t levels = sum / unit;
        if (unit % 2 == 0 && sum % unit == 0 && ((int32_t)(product >> place) + levels) & 1)
            levels--;
        error = sign * ((levels - 1024) * (1 << place) - below);
    }
    int32_t before = -2, after = -2;
    for (int32_t size = plain < 0 ? -plain : plain; size; size >>= 1)
        before++;
    for (int32_t size = level < 0 ? -level : level; size; size >>= 1)
        after++;
    if (before < 0 && (error < 0) != (n < 0))
        before--; /* below a power of two float32 is finer */
    uint64_t distance = (uint64_t)(error < 0 ? -error : error) << (23 - power - before);
    uint64_t lost = after > before ? 1ULL << (after - before - 1) : 0;
    int32_t down = (level - 1) >> 1;
    if (distance < (lost + 1) * ${m}u - ${half}u)
        return down + (down & 1) - ($offset);
    return down + (error > 0) - ($offset);
}
"""


def _errors(m: int, zero: int) -> NDArray[np.int16]:
    """Return float32(n * m) - n * m for every byte n, in the order of unsigned bytes."""
    n = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64) - zero
    exact = n * m
    return (exact.astype(np.float32).astype(np.int64) - exact).astype(np.int16)


def _places(m: int, count: int) -> NDArray[np.uint8]:
    """Return for sums of 0, 1, 2 ... scales the number of bits below the 24 of float32."""
    sums = np.arange(255 * count + 1, dtype=np.int64) * m
    return np.array([max(int(value).bit_length() - 24, 0) for value in sums], np.uint8)


def _near_a_power(m: int, count: int) -> bool:
    """Return whether an error could carry a sum over a power of two."""
    sums = np.arange(1, 255 * count + 1, dtype=np.int64) * m
    powers = np.int64(1) << np.arange(24, 45, dtype=np.int64)
    distance = np.abs(sums[:, None] - powers[None, :])
    return bool((distance < 2 * _NEAR).any())
