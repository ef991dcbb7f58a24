"""Functions of one element: float32, and integers where they have a meaning.

Sources: the ONNX operator specifications; TFLite's kernels agree where they have the operator.
Floats are computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covp.graph.graph import Op
from covp.graph.ops.definition import Array
from covp.graph.ops.pointwise import INTEGERS, NUMBERS, pointwise


@dataclass(frozen=True)
class Parameters:
    """The numbers of an activation function, named as ONNX does.

    Attributes:
        alpha: of ELU, SELU, CELU, HARD_SIGMOID, THRESHOLDED_RELU, SWISH; SHRINK's bias.
        beta: of HARD_SIGMOID; SELU's gamma; SHRINK's lambda.
    """

    alpha: float = 1.0
    beta: float = 0.0


@dataclass(frozen=True)
class Gelu:
    """GELU by the error function, or by tanh where ``approximate``."""

    approximate: bool = False


@dataclass(frozen=True)
class IsInfinite:
    """IS_INF: which infinities count."""

    negative: bool = True
    positive: bool = True


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(op: Op, x: Array) -> Array:
    if op.attributes is not None and op.attributes.approximate:
        return np.asarray(x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(x / 2 * (1 + _erf(x / math.sqrt(2))))


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)) without overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _elu(op: Op, x: Array) -> Array:
    alpha = 1.0 if op.attributes is None else op.attributes.alpha
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _shrink(op: Op, x: Array) -> Array:
    a = op.attributes
    return np.where(x < -a.beta, x + a.alpha, np.where(x > a.beta, x - a.alpha, 0))


def _is_infinite(op: Op, x: Array) -> Array:
    a = op.attributes
    return np.asarray(((x == -np.inf) & a.negative) | ((x == np.inf) & a.positive))


FLOAT_FUNCTIONS: dict[str, Callable[[Op, Array], Array]] = {
    "ACOS": lambda op, x: np.arccos(x),
    "ACOSH": lambda op, x: np.arccosh(x),
    "ASIN": lambda op, x: np.arcsin(x),
    "ASINH": lambda op, x: np.arcsinh(x),
    "ATAN": lambda op, x: np.arctan(x),
    "ATANH": lambda op, x: np.arctanh(x),
    "CEIL": lambda op, x: np.ceil(x),
    "CELU": lambda op, x: np.where(
        x < 0, op.attributes.alpha * np.expm1(np.minimum(x, 0) / op.attributes.alpha), x
    ),
    "COS": lambda op, x: np.cos(x),
    "COSH": lambda op, x: np.cosh(x),
    "ELU": _elu,
    "ERF": lambda op, x: _erf(x),
    "EXP": lambda op, x: np.exp(x),
    "FLOOR": lambda op, x: np.floor(x),
    "GELU": _gelu,
    "HARD_SIGMOID": lambda op, x: np.clip(x * op.attributes.alpha + op.attributes.beta, 0, 1),
    "HARD_SWISH": lambda op, x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LOG": lambda op, x: np.log(x),
    "MISH": lambda op, x: x * np.tanh(softplus(x)),
    "RECIPROCAL": lambda op, x: 1 / x,
    "RELU_0_TO_1": lambda op, x: np.clip(x, 0, 1),
    "RELU_N1_TO_1": lambda op, x: np.clip(x, -1, 1),
    "ROUND": lambda op, x: np.rint(x),
    "RSQRT": lambda op, x: 1 / np.sqrt(x),
    "SELU": lambda op, x: (
        op.attributes.beta * np.where(x > 0, x, op.attributes.alpha * np.expm1(np.minimum(x, 0)))
    ),
    "SHRINK": _shrink,
    "SIN": lambda op, x: np.sin(x),
    "SINH": lambda op, x: np.sinh(x),
    "SOFTPLUS": lambda op, x: softplus(x),
    "SOFTSIGN": lambda op, x: x / (1 + np.abs(x)),
    "SQRT": lambda op, x: np.sqrt(x),
    "SWISH": lambda op, x: x / (1 + np.exp(-op.attributes.alpha * x)),
    "TAN": lambda op, x: np.tan(x),
    "THRESHOLDED_RELU": lambda op, x: np.where(x > np.float32(op.attributes.alpha), x, 0),
}
"""The function of each kind; its argument is float64."""


def _in_double(function: Callable[[Op, Array], Array]) -> Callable[[Op, Array], Array]:
    def compute(op: Op, x: Array) -> Array:
        return function(op, x.astype(np.float64))

    return compute


for _kind, _function in FLOAT_FUNCTIONS.items():
    pointwise(_kind, _in_double(_function))
pointwise("ABS", lambda op, x: np.abs(x), NUMBERS)
pointwise("NEG", lambda op, x: np.negative(x), NUMBERS)
pointwise("SIGN", lambda op, x: np.sign(x), NUMBERS)
pointwise("SQUARE", lambda op, x: x * x, NUMBERS)
pointwise("BITWISE_NOT", lambda op, x: np.invert(x), INTEGERS)
pointwise("LOGICAL_NOT", lambda op, x: np.logical_not(x), "b")
pointwise("IS_NAN", lambda op, x: np.isnan(x), gives="bool")
pointwise("IS_INF", _is_infinite, gives="bool")
