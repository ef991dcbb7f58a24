"""TFLM's fixed-point arithmetic in Python's integers, from its definition: an oracle of kernels."""

from __future__ import annotations

import math


def quantized_multiplier(real: float) -> tuple[int, int]:
    """QuantizeMultiplier: real = multiplier / 2**31 * 2**shift, the multiplier from 2**30 on."""
    mantissa, exponent = math.frexp(real)
    multiplier = math.floor(mantissa * 2**31 + 0.5)
    return (2**30, exponent + 1) if multiplier == 2**31 else (multiplier, exponent)


def scaled(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier: a shift that wraps, then gemmlowp's two roundings.

    SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT.
    """
    wrapped = (value << max(shift, 0)) & 0xFFFFFFFF
    signed = wrapped - (1 << 32) if wrapped >> 31 else wrapped
    high = (signed * multiplier + (1 << 30)) >> 31
    exponent = max(-shift, 0)
    rest, threshold = high & ((1 << exponent) - 1), ((1 << exponent) - 1) >> 1
    return (high >> exponent) + (rest > threshold + (high < 0))
