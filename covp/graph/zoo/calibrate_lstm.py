"""Post-training quantization of an LSTM, and scales from ranges.

TFLite's scheme: int8 activations, weights and hidden state, biases int32 at the product of the
scales of input and weights, an int16 cell state whose scale is a power of two.
"""

from __future__ import annotations

import math

import numpy as np

from covp.graph.graph import Graph, Op, Quantization, State, Tensor
from covp.graph.ops.sequence_lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS
from covp.graph.zoo.builder import quantization

Ranges = dict[str, tuple[float, float]]
"""The lowest and highest value of tensors by name."""
_LEAST_POWER, _MOST_POWER = -15, -9


def affine(low: float, high: float) -> Quantization | None:
    """int8 over a range."""
    scale = np.float32(max(high - low, 1e-6) / 255)
    return quantization(scale, int(np.clip(round(-128 - low / float(scale)), -128, 127)))


def symmetric(constant: Tensor) -> Tensor:
    """A float constant in int8 with the zero point 0."""
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
