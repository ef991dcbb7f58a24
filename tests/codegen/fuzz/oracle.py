"""int8 operators from the specification, in loops and Python's integers; no code of covp's graph.

Sources: the TFLite 8-bit quantization specification, and for the roundings TFLM's reference
kernels (tests/codegen/tflm.py).
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Op
from tests.codegen.tflm import quantized_multiplier, scaled

Array = NDArray[Any]


def oracle(op: Op, inputs: list[Array]) -> Array | None:
    """The output of an int8 operator; None where this file does not know it."""
    known = _ORACLES.get(op.kind)
    if known is None or op.output.dtype != np.int8 or op.input(0).dtype != np.int8:
        return None
    given = iter(inputs)
    values = [next(given) if t is not None and t.data is None else t.data if t else None
              for t in op.inputs]  # fmt: skip
    return np.array(known(op, values), np.int8).reshape(op.output.shape)


def _factor(real: float) -> tuple[int, int]:
    multiplier, shift = quantized_multiplier(real)
    return (0, 0) if shift < -31 else (multiplier, shift)


def _limits(op: Op) -> tuple[int, int]:
    scale, zero = np.float32(op.output.scale), op.output.zero_point

    def stored(real: float) -> int:
        steps = float(np.float32(real) / scale)
        return zero + int(math.copysign(math.floor(abs(steps) + 0.5), steps))

    low, high = {
        "relu": (0.0, None), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)
    }.get(op.attributes.activation, (None, None))  # fmt: skip
    return (
        -128 if low is None else max(-128, stored(low)),
        127 if high is None else min(127, stored(high)),
    )


def _clamped(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _scale(op: Op, position: int) -> float:
    return float(np.float32(op.input(position).scale))


def _weighted(op: Op, values: list[Array | None]) -> list[int]:
    x, weights, bias = values[0], values[1], values[2] if len(values) > 2 else None
    assert x is not None
    assert weights is not None
    if op.kind == "FULLY_CONNECTED":
        x = x.reshape(-1, 1, 1, weights.shape[1])
        weights = weights.reshape(weights.shape[0], 1, 1, -1)
        stride = dilation = (1, 1)
        top = left = 0
    else:
        a = op.attributes
        stride, dilation, top, left = a.stride, a.dilation, a.padding.top, a.padding.left
    depthwise = op.kind == "DEPTHWISE_CONV_2D"
    centred = x.astype(np.int64) - op.input(0).zero_point
    out = op.output.shape if len(op.output.shape) == 4 else (x.shape[0], 1, 1, op.output.shape[-1])
    quantization = op.input(1).quantization
    assert quantization is not None
    scales = np.broadcast_to(quantization.scale, (out[3],))
    out_scale = float(np.float32(op.output.scale))
    factors = [_factor(_scale(op, 0) * float(s) / out_scale) for s in scales]
    limits, results = _limits(op), []
    for b, oy, ox, oc in product(*map(range, out)):
        total = 0
        kernel = weights[0, :, :, oc] if depthwise else weights[oc]
        for ky, kx in product(range(kernel.shape[0]), range(kernel.shape[1])):
            iy = oy * stride[0] - top + ky * dilation[0]
            ix = ox * stride[1] - left + kx * dilation[1]
            if 0 <= iy < x.shape[1] and 0 <= ix < x.shape[2]:
                pixel = centred[b, iy, ix]
                if depthwise:
                    total += int(pixel[oc // (out[3] // x.shape[3])]) * int(kernel[ky, kx])
                else:
                    total += int(pixel @ kernel[ky, kx].astype(np.int64))
        total = _wrapped(total + (0 if bias is None else int(bias.ravel()[oc])))
        results.append(_clamped(scaled(total, *factors[oc]) + op.output.zero_point, limits))
    return results


def _elementwise(op: Op, values: list[Array | None]) -> list[int]:
    a, b = np.broadcast_arrays(*[v for v in values[:2] if v is not None])
    zero, limits, results = op.output.zero_point, _limits(op), []
    zeros = op.input(0).zero_point, op.input(1).zero_point
    out_scale = float(np.float32(op.output.scale))
    if op.kind == "MUL":
        factor = _factor(_scale(op, 0) * _scale(op, 1) / out_scale)
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
            results.append(scaled((x - zeros[0]) * (y - zeros[1]), *factor) + zero)
        return [_clamped(value, limits) for value in results]
    twice = 2 * max(_scale(op, 0), _scale(op, 1))
    first, second = _factor(_scale(op, 0) / twice), _factor(_scale(op, 1) / twice)
    last, sign = _factor(twice / (2**20 * out_scale)), -1 if op.kind == "SUB" else 1
    for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
        left = scaled((x - zeros[0]) * 2**20, *first)
        right = scaled((y - zeros[1]) * 2**20, *second)
        results.append(_clamped(scaled(left + sign * right, *last) + zero, limits))
    return results


def _pool(op: Op, values: list[Array | None]) -> list[int]:
    x, a, limits, results = values[0], op.attributes, _limits(op), []
    assert x is not None
    for b, oy, ox, c in product(*map(range, op.output.shape)):
        top, left = oy * a.stride[0] - a.padding.top, ox * a.stride[1] - a.padding.left
        rows = slice(max(top, 0), max(top + a.filter[0], 0))
        columns = slice(max(left, 0), max(left + a.filter[1], 0))
        window = x[b, rows, columns, c].ravel().tolist()
        if op.kind == "MAX_POOL_2D":
            value = max(window, default=-128)
        else:
            total, half = sum(window), len(window) // 2
            value = (total + half) // len(window) if total > 0 else -((half - total) // len(window))
        results.append(_clamped(value, limits))
    return results


def _rectified(op: Op, values: list[Array | None]) -> list[int]:
    x = values[0]
    assert x is not None
    zero, out = op.output.zero_point, np.float32(op.output.scale)
    source, alpha = np.float32(op.input(0).scale), getattr(op.attributes, "alpha", 1.0)
    if op.kind == "LEAKY_RELU":
        slope = float(np.float32(source * np.float32(alpha)) / out)
        positive, negative = _factor(float(source / out)), _factor(abs(slope)) if slope else (0, 0)
        sign = -1 if slope < 0 else 1
        return [
            _clamped(
                zero + (scaled(v, *positive) if v >= 0 else sign * scaled(v, *negative)),
                (-128, 127),
            )
            for v in (x.astype(int) - op.input(0).zero_point).ravel().tolist()
        ]
    factor = _factor(_scale(op, 0) / float(out))
    six = zero + math.floor(float(np.float32(6) / out) + 0.5)
    limits = max(-128, zero), 127 if op.kind == "RELU" else min(127, six)
    centred = (x.astype(int) - op.input(0).zero_point).ravel().tolist()
    return [_clamped(scaled(v, *factor) + zero, limits) for v in centred]


_ORACLES = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _weighted),
    **dict.fromkeys(("ADD", "SUB", "MUL"), _elementwise),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _pool),
    **dict.fromkeys(("RELU", "RELU6", "LEAKY_RELU"), _rectified),
}
