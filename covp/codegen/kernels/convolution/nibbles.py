"""int4 weights in C: two to a byte or eight to a word, unpacked in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed_words(groups: NDArray[Any]) -> NDArray[np.uint32]:
    """Pack (..., 8) int4 values into (...) words, the first value in the lowest bits."""
    nibbles = groups.astype(np.int64) & 15
    words = (nibbles << (4 * np.arange(8))).sum(axis=-1)
    return np.asarray(words, np.uint32)


def packed_bytes(values: NDArray[Any]) -> NDArray[np.int8]:
    """Pack (n, m) int4 values into (n, ceil(m / 2)) bytes, the first in the lower half."""
    padded = np.pad(values.astype(np.int64), ((0, 0), (0, values.shape[1] % 2)))
    both = (padded[:, ::2] & 15) | (padded[:, 1::2] << 4)
    return np.asarray(both.astype(np.uint8).view(np.int8))


def nibble(word: str, number: int) -> str:
    """Return the C expression of the value of a word's nibble, from -8 to 7."""
    if number == 7:
        return f"(int32_t){word} >> 28"
    return f"(int32_t)({word} << {28 - 4 * number}) >> 28"
