"""Post-training quantization of a float graph to int8, with scales seen on sample inputs.

TFLite's scheme (arXiv:1712.05877 and its quantization specification): activations per tensor and
asymmetric; filters of convolutions per channel and symmetric, of fully connected layers per
tensor; biases int32 at the product of the two scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.reference import run_all
from covp.zoo.builder import quantization

_KEEPS_SCALE = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D", "RESHAPE"})
_WEIGHT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": None}
_SOFTMAX = (1 / 256, -128)


def quantize(
    graph: Graph, input_quantization: Quantization, samples: Sequence[NDArray[np.float32]]
) -> Graph:
    """The graph in int8.

    Args:
        graph: float32, of one input; of the operators that the zoo's topologies use.
        input_quantization: of the input, per tensor.
        samples: inputs, of which the ranges of all values are taken.
    """
    ranges = _ranges(graph, samples)
    new: dict[int, Tensor] = {id(t): _activation(t, input_quantization) for t in graph.inputs}
    ops = []
    for op in graph.ops:
        for tensor in op.outputs:
            if op.kind in _KEEPS_SCALE:
                scaled = new[id(op.input(0))].quantization
            elif op.kind == "SOFTMAX":
                scaled = quantization(*_SOFTMAX)
            else:
                scaled = _affine(*ranges[tensor.name])
            new[id(tensor)] = _activation(tensor, scaled)
        if op.kind in _WEIGHT_AXIS:
            new |= _filter(op, new[id(op.input(0))].scale)
        inputs = [None if t is None else new.get(id(t), t) for t in op.inputs]
        outputs = [new[id(t)] for t in op.outputs]
        ops.append(Op(op.kind, op.name, inputs, outputs, op.attributes, op.index))
    return Graph(
        graph.name, [new[id(t)] for t in graph.inputs], [new[id(t)] for t in graph.outputs], ops
    )


def spread_logits(
    graph: Graph, samples: Sequence[NDArray[np.float32]], deviation: float = 2.0
) -> None:
    """Scale and shift the layer before SOFTMAX so that the samples' logits lie around 0.

    Random layers and averages leave little that distinguishes one input from another; without this
    SOFTMAX would answer every input alike.
    """
    last = graph.ops[-2]
    weights, bias = last.input(1), last.input(2)
    assert weights.data is not None and bias.data is not None
    logits = np.array([run_all(graph, [sample])[last.output.name] for sample in samples])
    factor = np.float32(deviation / logits.std(axis=0).mean())
    weights.data = weights.data * factor
    bias.data = (bias.data - logits.mean(axis=0).reshape(-1)) * factor


def _ranges(graph: Graph, samples: Sequence[NDArray[np.float32]]) -> dict[str, tuple[float, float]]:
    """The lowest and highest value of each computed tensor; 0 is always inside."""
    ranges: dict[str, tuple[float, float]] = {}
    for sample in samples:
        for name, value in run_all(graph, [sample]).items():
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
    return ranges


def _affine(low: float, high: float) -> Quantization | None:
    scale = np.float32(max(high - low, 1e-6) / 255)
    return quantization(scale, int(np.clip(round(-128 - low / float(scale)), -128, 127)))


def _activation(tensor: Tensor, scaled: Quantization | None) -> Tensor:
    return Tensor(tensor.name, tensor.shape, np.dtype(np.int8), scaled)


def _filter(op: Op, input_scale: float) -> dict[int, Tensor]:
    """The weights and the bias of a convolution or fully connected layer."""
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
