"""GELU of int8: the function of each stored value, as TFLite's table has it.

Source: LUTPopulateInt8 (tensorflow/lite/kernels/internal/common.h) with GeluTransform
(kernels/internal/reference/gelu.h): float32 throughout, rounded half away from zero.
"""

from __future__ import annotations

import math

import numpy as np

from covp.graph.graph import Op
from covp.graph.ops.definition import Array
from covp.graph.ops.pointwise import POINTWISE, QUANTIZED


def _gelu(op: Op, x: Array) -> Array:
    source, out = op.input(0), op.output
    real = np.float32(source.scale) * (x.astype(np.int32) - source.zero_point).astype(np.float32)
    value = POINTWISE["GELU"].compute(op, real).astype(np.float32)
    scaled = value * (np.float32(1) / np.float32(out.scale))
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    # 0.49999997 + 0.5 rounds up to 1 in float32
    rounded = np.where(np.abs(scaled) < math.nextafter(0.5, 0), 0, rounded)
    info = np.iinfo(out.dtype)
    return np.clip(rounded.astype(np.int64) + out.zero_point, info.min, info.max)


QUANTIZED["GELU"] = _gelu
