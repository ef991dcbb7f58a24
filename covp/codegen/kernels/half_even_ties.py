"""Exact ties of averages in onnxruntime's arithmetic, where both scales are the same.

The average of 2, 4, 8 ... pixels of a scale s = m * U (m of 24 bits) is half-way between two levels
for one sum in so many. onnxruntime adds up float32(n * s), so what decides is by how many U its sum
is off. That error needs the lowest 32 bits of the sums only: each is rounded to a multiple of a
power of two that follows from the sum of the integers n, and with the same scale on both sides the
rounding of (sum / count) / s and of the zero point's addition follow from it without a division.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_array
from covp.codegen.kernels.float24 import mantissa
from covp.graph.graph import Op

_NEAR = 1 << 10
"""More than any error of a sum, in units of U."""


def ties_text(op: Op, count: int, offset: int, loops: str, parameters: str) -> str | None:
    """C text of ``int32_t exact(...)``, or None where the scales or the count do not allow it.

    Args:
        op: AVERAGE_POOL_2D.
        count: pixels of a window.
        offset: by which the model's zero points are larger.
        loops: C text of the loops over a window's bytes; ``{tap}`` is the statement for ``value``.
        parameters: of the function.
    """
    scale, zero = op.input(0).scale, op.input(0).zero_point
    if scale != op.output.scale or count & (count - 1) or not 2 <= count <= 16:
        return None
    m, _ = mantissa(scale)
    errors, places = _errors(m, zero), _places(m, count)
    if errors.any() and _near_a_power(m, count):
        return None
    level_zero = op.output.zero_point + offset
    tap = (
        f"n += value - ({zero}); s += (uint32_t)(value - ({zero})) * {m}u"
        " + (uint32_t)errors[(uint8_t)value];"
        " bits = places[n < 0 ? -n : n];"
        " if (bits) s = ((s + (1u << (bits - 1)) - 1 + ((s >> bits) & 1)) >> bits) << bits;"
    )
    b = count.bit_length() - 1
    return (
        c_array("errors", errors, "of each byte's float32 product, in units of the last bit")
        + c_array("places", places, "bits that float32 cuts off a sum of so many scales")
        + f"""\
static __attribute__((noinline)) int32_t exact({parameters})
{{
    int32_t n = 0;
    uint32_t s = 0, bits;
{loops.format(tap=tap)}
    int32_t error = (int32_t)(s - (uint32_t)n * {m}u);
    /* twice the level, odd; exponents of the level without and with the zero point */
    int32_t level = (n >> {b - 1}) + ({2 * level_zero});
    int32_t before = -1, after = -1;
    for (int32_t size = n < 0 ? -n : n; size >> {b}; size >>= 1)
        before++;
    for (int32_t size = level < 0 ? -level : level; size >> 1; size >>= 1)
        after++;
    if (before < 0 && (error < 0) != (n < 0))
        before--; /* below a power of two float32 is finer */
    uint64_t steps = (uint64_t)(error < 0 ? -error : error) << ({23 - b} - before);
    uint64_t lost = after > before ? 1ULL << (after - before - 1) : 0;
    int32_t down = (level - 1) >> 1;
    if (steps < (lost + 1) * {m}u - {m // 2}u)
        return down + (down & 1) - ({offset});
    return down + (error > 0) - ({offset});
}}
"""
    )


def _errors(m: int, zero: int) -> NDArray[np.int16]:
    """float32(n * m) - n * m for every byte, in the order of unsigned bytes."""
    n = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64) - zero
    exact = n * m
    return (exact.astype(np.float32).astype(np.int64) - exact).astype(np.int16)


def _places(m: int, count: int) -> NDArray[np.uint8]:
    """For a sum of 0, 1, 2 ... scales: the bits below the 24 that float32 keeps."""
    sums = np.arange(255 * count + 1, dtype=np.int64) * m
    return np.array([max(int(value).bit_length() - 24, 0) for value in sums], np.uint8)


def _near_a_power(m: int, count: int) -> bool:
    """Whether an error could carry a sum over a power of two."""
    sums = np.arange(1, 255 * count + 1, dtype=np.int64) * m
    powers = np.int64(1) << np.arange(24, 45, dtype=np.int64)
    distance = np.abs(sums[:, None] - powers[None, :])
    return bool((distance < 2 * _NEAR).any())
