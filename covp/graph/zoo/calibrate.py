"""Post-training quantization of a float graph to int8, with scales seen on sample inputs.

TFLite's scheme (arXiv:1712.05877 and its quantization specification): activations per tensor and
asymmetric; filters of convolutions per channel and symmetric, of fully connected layers per
tensor; biases int32 at the product of the two scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Quantization, State, Tensor
from covp.graph.ops.sequence_lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS
from covp.graph.reference import run_all
from covp.graph.zoo.builder import quantization

Ranges = dict[str, tuple[float, float]]
"""The lowest and highest value of tensors by name."""
_LEAST_POWER, _MOST_POWER = -15, -9


def affine(low: float, high: float) -> Quantization | None:
    """Return the int8 quantization that covers a range."""
    scale = np.float32(max(high - low, 1e-6) / 255)
    return quantization(scale, int(np.clip(round(-128 - low / float(scale)), -128, 127)))


def symmetric(constant: Tensor) -> Tensor:
    """Return a float constant in int8 with the zero point 0."""
    data = np.asarray(constant.data)
    scale = np.float32(float(np.abs(data).max()) / 127)
    stored = np.round(data / scale).astype(np.int8)
    return Tensor(constant.name, constant.shape, stored.dtype, quantization(scale), stored)


def quantize_lstm(op: Op, graph: Graph, ranges: Ranges, new: dict[int, Tensor]) -> list[State]:
    """Put the int8 tensors of an LSTM into ``new``, by the float ones' identity; its new states."""
    for position in (*range(INPUT_WEIGHTS, INPUT_WEIGHTS + 4),
                     *range(RECURRENT_WEIGHTS, RECURRENT_WEIGHTS + 4)):  # fmt: skip
        new[id(op.input(position))] = symmetric(op.input(position))
    source = new[id(op.input(0))]
    for gate in range(4):
        bias = op.input(BIASES + gate)
        weights = new[id(op.input(INPUT_WEIGHTS + gate))]
        scale = np.float32(source.scale) * np.float32(weights.scale)
        stored = np.round(np.asarray(bias.data) / scale).astype(np.int32)
        new[id(bias)] = Tensor(bias.name, bias.shape, stored.dtype, quantization(scale), stored)
    low, high = ranges[op.output.name]
    hidden = affine(low, high)
    largest = max(abs(end) for end in ranges[op.outputs[2].name])
    power = math.ceil(math.log2(max(largest, 1e-9) / 32768))
    cell = quantization(2.0 ** min(max(power, _LEAST_POWER), _MOST_POWER))
    new[id(op.output)] = Tensor(op.output.name, op.output.shape, np.dtype(np.int8), hidden)
    states = []
    for position, after, dtype, scaled in (
        (HIDDEN, op.outputs[1], np.int8, hidden), (CELL, op.outputs[2], np.int16, cell)
    ):  # fmt: skip
        before = op.input(position)
        (old,) = [state for state in graph.states if state.before is before]
        assert scaled is not None
        for tensor in (before, after):
            new[id(tensor)] = Tensor(tensor.name, tensor.shape, np.dtype(dtype), scaled)
        initial = np.full(before.shape, scaled.zero_point[0], dtype)
        states.append(State(old.name, new[id(before)], new[id(after)], initial))
    return states


_KEEPS_SCALE = frozenset(
    {"AVERAGE_POOL_2D", "MAX_POOL_2D", "RESHAPE", "SPLIT", "SPLIT_V", "PACK", "UNPACK"}
)
_WEIGHT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": None}
_FIXED = {"SOFTMAX": (1 / 256, -128), "LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
Sample = Sequence[NDArray[np.float32]]
"""One array for each input."""


def quantize(
    graph: Graph, input_quantizations: Sequence[Quantization], samples: Sequence[Sample]
) -> Graph:
    """Return the graph in int8.

    Args:
        graph: float32; of the operators that the zoo's topologies use.
        input_quantizations: of each input, per tensor.
        samples: inputs, of which the ranges of all values are taken.
    """
    ranges = _ranges(graph, samples)
    new: dict[int, Tensor] = {
        id(tensor): _activation(tensor, scaled)
        for tensor, scaled in zip(graph.inputs, input_quantizations, strict=True)
    }
    ops: list[Op] = []
    states: list[State] = []
    for op in graph.ops:
        if op.kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
            states += quantize_lstm(op, graph, ranges, new)
        else:
            _set_scales(op, ranges, new)
        read = [None if t is None else new.get(id(t), t) for t in op.inputs]
        written = [new[id(t)] for t in op.outputs]
        if op.kind == "CONCATENATION":
            read = _of_one_scale(read, written[0], ops)
        name = f"{op.kind.lower()}_{len(ops)}"
        ops.append(Op(op.kind, name, read, written, op.attributes, len(ops)))
    inputs, outputs = ([new[id(t)] for t in ends] for ends in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, outputs, ops, states=states)


def _set_scales(op: Op, ranges: Ranges, new: dict[int, Tensor]) -> None:
    """Make the int8 tensors of an operator's outputs and constants."""
    source = op.input(1 if op.kind == "SPLIT" else 0)
    for tensor in op.outputs:
        if op.kind in _KEEPS_SCALE:
            scaled = new[id(source)].quantization
        elif op.kind in _FIXED:
            scaled = quantization(*_FIXED[op.kind])
        elif op.kind == "CONCATENATION":
            parts = [new[id(t)] for t in op.inputs if t is not None]
            scaled = max(parts, key=lambda part: part.scale).quantization
        else:
            scaled = affine(*ranges[tensor.name])
        new[id(tensor)] = _activation(tensor, scaled)
    if op.kind in _WEIGHT_AXIS:
        new |= _filter(op, new[id(op.input(0))].scale)
        return
    for constant in op.inputs:
        if constant is not None and constant.data is not None and constant.dtype == np.float32:
            new[id(constant)] = symmetric(constant)


def _of_one_scale(
    inputs: list[Tensor | None], output: Tensor, ops: list[Op]
) -> list[Tensor | None]:
    """Return a CONCATENATION's inputs, after a QUANTIZE where they have another scale.

    Those of later inputs come first, as converters have it.
    """
    made = list(inputs)
    for position, tensor in reversed(list(enumerate(inputs))):
        assert tensor is not None
        if (tensor.scale, tensor.zero_point) == (output.scale, output.zero_point):
            continue
        index = len(ops)
        result = Tensor(f"quantize_{index}_out", tensor.shape, tensor.dtype, output.quantization)
        ops.append(Op("QUANTIZE", f"quantize_{index}", [tensor], [result], None, index))
        made[position] = result
    return made


def spread_logits(graph: Graph, samples: Sequence[Sample], deviation: float = 2.0) -> None:
    """Scale and shift the layer before SOFTMAX so that the samples' logits lie around 0.

    Random layers and averages leave little that distinguishes one input from another; without this
    SOFTMAX would answer every input alike.
    """
    last = next(op for op in reversed(graph.ops) if op.kind in _WEIGHT_AXIS)
    weights, bias = last.input(1), last.input(2)
    assert weights.data is not None and bias.data is not None
    logits = np.array([run_all(graph, sample)[last.output.name] for sample in samples])
    factor = np.float32(deviation / logits.std(axis=0).mean())
    weights.data = weights.data * factor
    bias.data = (bias.data - logits.mean(axis=0).reshape(-1)) * factor


def _ranges(graph: Graph, samples: Sequence[Sample]) -> Ranges:
    """Return the lowest and highest value of each computed tensor; 0 is always inside."""
    ranges: Ranges = {}
    for sample in samples:
        for name, value in run_all(graph, sample).items():
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
    return ranges


def _activation(tensor: Tensor, scaled: Quantization | None) -> Tensor:
    return Tensor(tensor.name, tensor.shape, np.dtype(np.int8), scaled)


def _filter(op: Op, input_scale: float) -> dict[int, Tensor]:
    """Return the weights and the bias of a convolution or fully connected layer."""
    weights, bias = op.input(1), op.input(2)
    assert weights.data is not None and bias.data is not None
    axis = _WEIGHT_AXIS[op.kind]
    others = tuple(i for i in range(weights.data.ndim) if i != axis)
    largest: NDArray[Any] = np.abs(weights.data).max(axis=others if axis is not None else None)
    scale = np.atleast_1d(largest / 127).astype(np.float32)
    shape = [-1 if i == axis else 1 for i in range(weights.data.ndim)]
    stored = np.round(weights.data / scale.reshape(shape)).astype(np.int8)
    bias_scale = (np.float32(input_scale) * scale).astype(np.float32)
    stored_bias = np.round(bias.data / bias_scale).astype(np.int32)
    return {
        id(weights): Tensor(
            weights.name, weights.shape, stored.dtype, quantization(scale, 0, axis or 0), stored
        ),
        id(bias): Tensor(
            bias.name, bias.shape, stored_bias.dtype, quantization(bias_scale), stored_bias
        ),
    }
