"""`Requantization`: from sums of 32 bits to stored values, as TFLM does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.array_text import Printed
from covp.graph.quantization import (
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
)

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Requantization(Printed):
    """A fixed-point factor, a zero point and a clamp.

    Source: MultiplyByQuantizedMultiplier of tensorflow/lite/kernels/internal/common.h; the clamp is
    that of CalculateActivationRangeQuantized.

    Attributes:
        multiplier: int32, one, or one for each channel (the last axis); 0 or in [2**30, 2**31).
        shift: int32, as many; from -31 to 30, positive to the left.
        zero_point: of the output; TFLM's output_offset.
        low, high: of the output: quantized_activation_min and quantized_activation_max.
    """

    multiplier: Array
    shift: Array
    zero_point: int = 0
    low: int = -128
    high: int = 127

    def apply(self, sums: Array, dtype: Any = np.int8) -> Array:
        """Requantize sums to values of ``dtype``.

        ``sums`` of int64 are scaled as TFLM scales those of int16 layers, with 16 bits of the
        multiplier; all others modulo 2**32.
        """
        if sums.dtype == np.int64:
            scaled = multiply_by_reduced_multiplier(sums, self.multiplier, self.shift)
        else:
            scaled = multiply_by_quantized_multiplier(sums, self.multiplier, self.shift)
        return np.clip(scaled + self.zero_point, self.low, self.high).astype(dtype)
