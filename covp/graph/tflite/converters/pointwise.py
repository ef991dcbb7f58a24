"""Functions of one, two or three elements."""

from __future__ import annotations

from typing import Any

import tflite

from covp.errors import ModelError
from covp.graph.attributes import Elementwise
from covp.graph.graph import Op
from covp.graph.ops.unary import Gelu
from covp.graph.tflite.converters.common import (
    activation_of,
    no_attributes,
    options_of,
    register,
)

register(
    "ABS",
    "ATAN2",
    "CAST",
    "CEIL",
    "COS",
    "ELU",
    "EQUAL",
    "EXP",
    "FLOOR",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "GREATER",
    "GREATER_EQUAL",
    "HARD_SWISH",
    "LESS",
    "LESS_EQUAL",
    "LOG",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "LOGICAL_OR",
    "MAXIMUM",
    "MINIMUM",
    "NEG",
    "NOT_EQUAL",
    "POW",
    "PRELU",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "RIGHT_SHIFT",
    "ROUND",
    "RSQRT",
    "SELECT_V2",
    "SIGN",
    "SIN",
    "SQRT",
    "SQUARE",
    "SQUARED_DIFFERENCE",
    "BITWISE_XOR",
)(no_attributes)


@register("DIV")
def _divide(op: Op, table: Any) -> Elementwise:
    if table is None:
        return Elementwise()
    return Elementwise(
        activation_of(options_of(tflite.DivOptions, table).FusedActivationFunction())
    )


@register("GELU")
def _gelu(op: Op, table: Any) -> Gelu:
    return Gelu(table is not None and bool(options_of(tflite.GeluOptions, table).Approximate()))


@register("SELECT")
def _select(op: Op, table: Any) -> None:
    """Convert SELECT, the operator before SELECT_V2, which does not broadcast."""
    condition, chosen = op.input(0), op.input(1)
    if condition.size != 1 and condition.shape != chosen.shape:
        raise ModelError(
            f"its condition has shape {condition.shape} and its values {chosen.shape}, which is "
            "not supported; convert the model again, as SELECT_V2"
        )
    op.kind = "SELECT_V2"
