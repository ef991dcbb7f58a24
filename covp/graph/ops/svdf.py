"""SVDF: a fully connected layer over the last steps of a stream, as products of rank-1 filters.

Source: tensorflow/lite/micro/kernels/svdf_common.cc (EvalIntegerSvdfReference,
EvalFloatSvdfReference, PrepareSvdf).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Activation
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee
from covp.graph.quantization import (
    float_activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)

FEATURE, TIME, BIAS, STATE = 1, 2, 3, 4
"""Positions of the inputs after the data: (filters, features), (filters, steps), (units,), the
state of (batch, filters * steps)."""
Factor = tuple[int, int]


@dataclass(frozen=True)
class Svdf:
    """SVDF: each of the units sums ``rank`` filters.

    Outputs are the result and the state of afterwards. The integer forms have no activation but
    the output's range, as in TFLM.
    """

    rank: int
    activation: Activation = "none"


def svdf_factors(op: Op) -> tuple[Factor, Factor]:
    """Return the factors of a filter's value for the state, and of a unit's sum for the output."""
    single = np.float32
    data, feature, time, state = (
        single(op.input(position).scale) for position in (0, FEATURE, TIME, STATE)
    )
    first = float(data * feature / state)
    second = float(state * time / single(op.output.scale))
    return quantize_multiplier(first), quantize_multiplier(second)


def _shapes(op: Op) -> list[Shape]:
    source, feature, time = (op.input(position).shape for position in (0, FEATURE, TIME))
    if len(source) != 2 or len(feature) != 2 or len(time) != 2:
        raise ModelError(f"its input has shape {source}; two axes are needed")
    filters, rank = feature[0], op.attributes.rank
    if rank < 1 or filters % rank or time[0] != filters or feature[1] != source[1]:
        raise ModelError(f"{filters} filters of rank {rank} do not fit its input and weights")
    units, state = filters // rank, op.input(STATE)
    bias = op.inputs[BIAS]
    if bias is not None and bias.shape != (units,):
        raise ModelError(f"bias {bias.name} has shape {bias.shape}; {(units,)} is needed")
    kept = source[0], filters * time[1]
    if state.shape != kept:
        raise ModelError(f"state {state.name} has shape {state.shape}; {kept} is needed")
    for tensor in (op.input(FEATURE), op.input(TIME), bias):
        if tensor is not None and tensor.data is None:
            raise ModelError(
                f"tensor {tensor.name} must be constant; freeze the model", tensor=tensor.name
            )
    return [(source[0], units), state.shape]


def _types(op: Op) -> None:
    if len(op.inputs) <= STATE:
        raise ModelError(f"it has {len(op.inputs)} inputs; {STATE + 1} are needed")
    check_type(op.input(0), "int8", "float32")
    kind = op.input(0).dtype.name
    check_type(op.input(FEATURE), kind)
    check_type(op.output, kind)
    kept = ("int16", "int8") if kind == "int8" else (kind,)
    for tensor in (op.input(TIME), op.input(STATE), *op.outputs[1:]):
        check_type(tensor, *kept)
    if op.input(TIME).dtype != op.input(STATE).dtype:
        raise ModelError(f"state {op.input(STATE).name} is not of the type of its weights in time")
    bias = op.inputs[BIAS]
    if bias is not None:
        check_type(bias, "int32" if kind == "int8" else kind)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, feature, time, state = (given(values, position) for position in (0, FEATURE, TIME, STATE))
    bias = values[BIAS]
    rows = (x.shape[0], *time.shape)
    if x.dtype == np.float32:
        with ieee():
            kept = _shift(state.reshape(rows), x @ feature.T)
            sums = _units(op, (kept * time).sum(axis=2), bias)
            low, high = float_activation_range(op.attributes.activation)
            result = np.clip(sums, low, high).astype(np.float32)
        return [result, kept.reshape(state.shape)]
    first, second = svdf_factors(op)
    info, zero = np.iinfo(state.dtype), op.input(STATE).zero_point
    dot = (x.astype(np.int64) - op.input(0).zero_point) @ feature.T.astype(np.int64)
    scaled = multiply_by_quantized_multiplier(dot, *first)
    newest = np.clip(scaled, info.min, info.max) + zero
    kept = _shift(state.reshape(rows), newest.astype(state.dtype))
    sums = _units(op, ((kept.astype(np.int64) - zero) * time).sum(axis=2), bias)
    scaled = multiply_by_quantized_multiplier(sums.astype(np.int32), *second)
    result = np.clip(scaled + op.output.zero_point, -128, 127).astype(np.int8)
    return [result, kept.reshape(state.shape)]


def _shift(state: Array, newest: Array) -> Array:
    """Drop the oldest step of (batch, filters, steps) and append the newest."""
    return np.concatenate([state[..., 1:], newest[..., None]], axis=2).astype(state.dtype)


def _units(op: Op, filters: Array, bias: Array | None) -> Array:
    sums = filters.reshape(filters.shape[0], -1, op.attributes.rank).sum(axis=2)
    return np.asarray(sums if bias is None else sums + bias)


def _macs(op: Op) -> int:
    return op.input(0).shape[0] * (op.input(FEATURE).size + op.input(TIME).size)


def _reads(op: Op) -> list[IndexMap]:
    features, steps = op.input(FEATURE).shape[1], op.input(TIME).shape[1]
    space = Space(op)
    batch, unit = space.axes
    filters = unit * op.attributes.rank + space.loop(op.attributes.rank)
    feature, step = space.loop(features), space.loop(steps)
    bias = None if op.inputs[BIAS] is None else (unit,)
    kept = batch, filters * steps + step
    result = space.make_map((batch, feature), (filters, feature), (filters, step), bias, kept)
    space = Space(op, 1)
    batch, place = space.axes
    feature = space.loop(features)
    after = space.make_map(
        (batch, feature), (place // steps, feature), None, None, (batch, place + 1)
    )
    return [result, after][: len(op.outputs)]


OPS["SVDF"] = OpDefinition(_shapes, _reference, _macs, _types, reads=_reads)
