"""Arithmetic, activations and reductions."""

from __future__ import annotations

import math
from typing import Any

import tflite

from covp.errors import ModelError
from covp.graph.attributes import Elementwise, LeakyRelu, Mean, Softmax
from covp.graph.graph import Op
from covp.graph.ops.along_axis import ArgMax, Cumulative
from covp.graph.ops.normalization import LocalResponse
from covp.graph.tflite.converters.common import (
    CONVERTERS,
    Converter,
    activation_of,
    checked_axis,
    constant_axes,
    constant_integers,
    no_attributes,
    options_of,
    register,
)


def _elementwise(kind: type[Any]) -> Converter:
    def convert(op: Op, table: Any) -> Elementwise:
        if table is None:
            return Elementwise()
        return Elementwise(activation_of(options_of(kind, table).FusedActivationFunction()))

    return convert


@register("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")
def _mean(op: Op, table: Any) -> Mean:
    keep = table is not None and bool(options_of(tflite.ReducerOptions, table).KeepDims())
    return Mean(constant_axes(op, 1, len(op.input(0).shape)), keep)


@register("ARG_MAX", "ARG_MIN")
def _arg_max(op: Op, table: Any) -> ArgMax:
    axis = constant_integers(op, 1, "the axis")
    return ArgMax(checked_axis(axis[0], len(op.input(0).shape)))


@register("CUMSUM")
def _cumsum(op: Op, table: Any) -> Cumulative:
    axis = constant_integers(op, 1, "the axis")
    options = options_of(tflite.CumsumOptions, table)
    flags = bool(options.Exclusive()), bool(options.Reverse())
    return Cumulative(checked_axis(axis[0], len(op.input(0).shape)), *flags)


@register("SOFTMAX")
def _softmax(op: Op, table: Any) -> Softmax:
    beta = float(options_of(tflite.SoftmaxOptions, table).Beta())
    if not (math.isfinite(beta) and beta > 0):
        raise ModelError(f"beta {beta:g} is not a positive number")
    return Softmax(beta)


@register("L2_NORMALIZATION")
def _l2_normalization(op: Op, table: Any) -> None:
    options = options_of(tflite.L2NormOptions, table)
    if activation_of(options.FusedActivationFunction()) != "none":
        raise ModelError("a fused activation is not supported; use a RELU operator")


@register("LOCAL_RESPONSE_NORMALIZATION")
def _local_response(op: Op, table: Any) -> LocalResponse:
    options = options_of(tflite.LocalResponseNormalizationOptions, table)
    numbers = options.Bias(), options.Alpha(), options.Beta()
    if options.Radius() < 1:
        raise ModelError(f"radius {options.Radius()} is not positive")
    # reference_ops::LocalResponseNormalization leaves out the last neighbour
    return LocalResponse(options.Radius(), options.Radius() - 1, *map(float, numbers))


@register("LEAKY_RELU")
def _leaky_relu(op: Op, table: Any) -> LeakyRelu:
    alpha = float(options_of(tflite.LeakyReluOptions, table).Alpha())
    if not math.isfinite(alpha):
        raise ModelError(f"alpha {alpha:g} is not a number")
    return LeakyRelu(alpha)


CONVERTERS["ADD"] = _elementwise(tflite.AddOptions)
CONVERTERS["MUL"] = _elementwise(tflite.MulOptions)
CONVERTERS["SUB"] = _elementwise(tflite.SubOptions)
register("DEQUANTIZE", "LOGISTIC", "LOG_SOFTMAX", "QUANTIZE", "RELU", "RELU6", "TANH")(
    no_attributes
)
