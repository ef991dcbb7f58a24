"""LAYER_NORMALIZATION_INT8: layer normalization of int8 along the last axis in integers.

Neither TFLite nor onnxruntime defines one, so this is covp's own. With n values x of a row, S their
sum, in stored units and therefore without the zero point:

    d = n * x - S                                    n times the distance from the mean
    V = n * sum(x**2) - S**2 + epsilon * n**2 / scale**2        with 16 fraction bits
    d / sqrt(V)                                      the normalized value

V is brought to 31 or 32 bits by a power of four, its root has 16 bits, the root's reciprocal 17.
The normalized value y has 16 fraction bits, and

    output = floor((y * G + B) / 2**32), clamped
    G = round(gamma / output scale * 2**16)
    B = round((beta / output scale + zero point + 1/2) * 2**32)

Against the layer in real numbers the output is off by less than 0.51 + 2**-13 * |output - zero
point| steps: the rounding to int8 and little else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import rows_of
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, of_one_type

MOST = 4096
"""Most values of a row for which sums stay within 32 bits."""
FRACTION = 16
"""Fraction bits of V: a small epsilon next to a small variance has to count."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LayerNormInt8:
    """LAYER_NORMALIZATION_INT8: input int8, gamma and beta float32 constants of the last axis."""

    epsilon: float = 1e-5


@dataclass(frozen=True, eq=False)
class LayerNormIntegers:
    """The layer as integers; names as in the module's text.

    Attributes:
        depth: n.
        epsilon: what is added to V, with its fraction bits.
        factor, offset: G (int32) and B for each channel.
        zero_point: of the output; inside B.
    """

    depth: int
    epsilon: int
    factor: Integers
    offset: Integers


def layer_norm_integers(op: Op) -> LayerNormIntegers:
    """Return the integers of an operator. Raises ModelError: gamma or beta is too large."""
    depth, scale, out = op.input(0).shape[-1], op.input(0).scale, op.output
    gamma, beta = (_constant(op.input(i)).astype(np.float64) for i in (1, 2))
    factor = np.rint(gamma / out.scale * 2.0**16)
    offset = np.rint((beta / out.scale + out.zero_point + 0.5) * 2.0**32)
    if np.abs(factor).max() >= 2**31 or np.abs(offset).max() >= 2**52:
        raise ModelError(f"gamma or beta is too large for the output's scale {out.scale:g}")
    epsilon = min(round(op.attributes.epsilon * depth**2 / scale**2 * 2.0**FRACTION), 1 << 60)
    return LayerNormIntegers(depth, epsilon, factor.astype(np.int64), offset.astype(np.int64))


def _constant(tensor: Tensor) -> NDArray[Any]:
    if tensor.data is None:
        raise ModelError(f"{tensor.name} must be constant; freeze the model", tensor=tensor.name)
    return tensor.data


def _root(value: int) -> int:
    """Return floor(sqrt(value)) of a value with 30 to 32 bits."""
    root = int(np.sqrt(float(value)))
    return root - (root * root > value)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    k = layer_norm_integers(op)
    x = given(values, 0).astype(np.int64).reshape(-1, k.depth)
    total = x.sum(axis=1)
    spread = ((k.depth * (x * x).sum(axis=1) - total**2) << FRACTION) + k.epsilon
    result = np.empty_like(x)
    for row, (values_of_row, s, v) in enumerate(zip(x, total, spread, strict=True)):
        result[row] = _row(k, k.depth * values_of_row - s, max(int(v), 1))
    return [np.clip(result, -128, 127).astype(np.int8).reshape(op.output.shape)]


def _row(k: LayerNormIntegers, distance: Integers, spread: int) -> Integers:
    # v = spread / 4**right in [2**30, 2**32)
    right = (spread.bit_length() - 31) // 2
    reciprocal = (1 << 31) // _root(spread >> 2 * right if right >= 0 else spread << -2 * right)
    h = right - FRACTION // 2
    left = max(3 - h, 0)
    y = ((distance << left) * (reciprocal << (17 - h - left))) >> 32
    return np.asarray((y * k.factor + k.offset) >> 32)


def _shape(op: Op) -> list[Shape]:
    source = op.input(0).shape
    if not source or source[-1] > MOST:
        raise ModelError(f"shape {source}: the last axis may have 1 to {MOST} values")
    for position in (1, 2):
        if op.input(position).shape != source[-1:]:
            raise ModelError(
                f"{op.input(position).name} has shape {op.input(position).shape}, "
                f"which should be {source[-1:]}"
            )
    return [source]


OPS["LAYER_NORMALIZATION_INT8"] = OpDefinition(
    _shape, _reference, types=of_one_type("int8"), reads=rows_of
)
