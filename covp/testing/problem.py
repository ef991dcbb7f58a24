"""`Problem`: what a kernel computes, as arrays and numbers, with the result that is expected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.array_text import Printed
from covp.graph.attributes import Padding

Array = NDArray[Any]
Pair = tuple[int, int]
"""(height, width)."""
Sides = tuple[int, int, int, int]
"""(top, bottom, left, right)."""


class Problem(Printed, ABC):
    """A dataclass of arrays and numbers, whose repr is Python text that makes it again."""

    @abstractmethod
    def expected(self) -> Any:
        """Return the result, or a tuple of several, in a new array."""

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result, or of the first of several results."""
        result = self.expected()
        return tuple((result[0] if isinstance(result, tuple) else result).shape)


def window_count(size: Pair, kernel: Pair, stride: Pair, dilation: Pair, padding: Sides) -> Pair:
    """Count rows and columns of windows over an image.

    Args:
        size, kernel, stride, dilation: (height, width).
        padding: (top, bottom, left, right).
    """
    rows, columns = (
        (size[i] + sum(padding[2 * i : 2 * i + 2]) - (kernel[i] - 1) * dilation[i] - 1) // stride[i]
        + 1
        for i in (0, 1)
    )
    return rows, columns


def pad(image: Array, padding: Sides, outside: float = 0) -> Array:
    """Pad an NHWC image with rows and columns.

    Args:
        image: (batch, height, width, channels).
        padding: (top, bottom, left, right).
        outside: their value.
    """
    sides = ((0, 0), padding[:2], padding[2:], (0, 0))
    return np.pad(image, sides, constant_values=outside)


def sides(padding: Sides) -> Padding:
    """Convert padding to the attribute of a graph's operator."""
    return Padding(*padding)
