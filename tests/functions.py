"""Layers that compute a function of real numbers in fixed point, with that function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import Softmax
from covp.graph.graph import Graph
from covp.graph.zoo.builder import single_op_graph
from covp.testing import tensors

Array = NDArray[Any]


@dataclass(frozen=True)
class Function:
    """One kind of operator in one type.

    Attributes:
        kind, dtype: of the operator; int8 or int16.
        real: the function in float64, along the last axis.
        scale, zero_point: of the output; without a scale the largest result is the largest number.
        steps: by how many steps of the output a result may be off.
        rejects: whether a scale of the input is one that the reader rejects.
    """

    kind: str
    dtype: str
    real: Callable[[Array], Array]
    scale: float | None
    zero_point: int
    steps: float
    rejects: Callable[[float], bool] = lambda scale: False

    def __str__(self) -> str:
        return f"{self.kind} {self.dtype}"

    def values(self) -> Array:
        """Stored values: all of int8, of int16 some; of functions of rows as pairs with the end."""
        info = np.iinfo(self.dtype)
        step = 1 if self.dtype == "int8" else 23
        every = np.r_[np.arange(info.min, info.max, step), info.max].astype(self.dtype)
        if self.kind in ROWS:
            return np.asarray(np.stack([every, np.full_like(every, info.max)], axis=1))
        return np.asarray(every[None])

    def exact(self, x: Array, scale: float, zero_point: int) -> Array:
        """The function's results in steps of the output, with its ends; float64."""
        with np.errstate(over="ignore"):
            result = self._results(x, scale, zero_point) / self._output_scale(scale, zero_point)
        info = np.iinfo(self.dtype)
        return np.asarray(np.clip(result + self.zero_point, info.min, info.max))

    def graph(self, scale: float, zero_point: int) -> Graph:
        """The layer alone, with this quantization of its input."""
        make = tensors.int8 if self.dtype == "int8" else tensors.int16
        x = make("x", self.values().shape, float(np.float32(scale)), zero_point)
        attributes = Softmax(1.0) if self.kind == "SOFTMAX" else None
        output = self._output_scale(scale, zero_point)
        how = {"scale": output, "zero_point": self.zero_point}
        return single_op_graph(self.kind, x, attributes=attributes, **how)

    def tolerance(self, scale: float) -> float:
        """Steps; more where TFLM gives what is far enough from 0 the end of the range at once."""
        far = min(_radius(scale, 4 if self.kind == "LOGISTIC" else 5), 700.0)
        beyond = {
            "LOGISTIC int8": 256 / (1 + math.exp(far)),
            "LOG_SOFTMAX int8": max(0.0, 255 - 16 * far),
        }
        return self.steps + beyond.get(str(self), 0.0)

    def _results(self, x: Array, scale: float, zero_point: int) -> Array:
        with np.errstate(all="ignore"):
            return self.real((x.astype(np.float64) - zero_point) * scale)

    def _output_scale(self, scale: float, zero_point: int) -> float:
        if self.scale is not None:
            return float(np.float32(self.scale))
        largest = np.abs(self._results(self.values(), scale, zero_point)).max()
        most = int(np.iinfo(self.dtype).max)
        if self.kind == "HARD_SWISH":  # what it takes
            largest = max(largest, scale)
        return float(np.float32(max(largest, 1e-30) / most))


def _radius(scale: float, bits: int) -> float:
    """CalculateInputRadius: what fits so many integer bits after the multiplier's shift."""
    shift = min(math.frexp(scale * 2.0 ** (31 - bits))[1], 30)
    return float(math.floor((2**bits - 1) * 2.0 ** (31 - bits - shift)) * scale)


ROWS = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _log_softmax(x: Array) -> Array:
    distance = x - x.max(axis=-1, keepdims=True)
    return np.asarray(distance - np.log(np.exp(distance).sum(axis=-1, keepdims=True)))


def _normalized(x: Array) -> Array:
    return np.asarray(x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), 1e-300))


def _positive(function: Callable[[Array], Array], other: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x > 0, function(np.where(x > 0, x, 1)), other)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


FUNCTIONS = [
    Function("LOGISTIC", "int8", _sigmoid, 1 / 256, -128, 0.64),
    Function("TANH", "int8", np.tanh, 1 / 128, 0, 0.51),
    Function("SOFTMAX", "int8", _softmax, 1 / 256, -128, 0.51),
    Function("LOG_SOFTMAX", "int8", _log_softmax, 1 / 16, 127, 0.51, lambda s: s <= 2**-26),
    Function("L2_NORMALIZATION", "int8", _normalized, 1 / 128, 0, 0.51),
    Function("EXP", "int8", np.exp, 0.05, -128, 0.51),
    Function("LOG", "int8", _positive(np.log, -1e9), 0.05, 0, 0.51),
    Function("ELU", "int8", lambda x: np.where(x > 0, x, np.expm1(x)), 0.02, -30, 0.51),
    Function("SQRT", "int8", _positive(np.sqrt, 0), 0.03, -128, 1.01),
    Function("RSQRT", "int8", _positive(lambda x: 1 / np.sqrt(x), 1e9), 0.03, -128, 0.51),
    Function("HARD_SWISH", "int8", lambda x: x * np.clip(x + 3, 0, 6) / 6, None, -100, 0.51),
    Function("ABS", "int8", np.abs, None, -128, 0.76),
    Function("LOGISTIC", "int16", _sigmoid, 2**-15, 0, 1.5, lambda s: s > 2.66),
    Function("TANH", "int16", np.tanh, 2**-15, 0, 3.5, lambda s: s > 2.66),
    Function("SOFTMAX", "int16", _softmax, 2**-15, 0, 2.5, lambda s: s >= 4.9),
    Function("SQRT", "int16", _positive(np.sqrt, 0), None, 0, 1.01),
    Function("ABS", "int16", np.abs, None, 0, 0.76),
]
"""All but those that are one interpolation of a pole: EXP, LOG and RSQRT of int16."""
