"""An int8 transformer for keyword spotting, built here with fixed random weights, and run.

    python examples/transformer_kws.py [--platform cortex-m4] [--tokens 196] [--heads 4]

A frame of 40 features becomes a token of 32 numbers plus its position; then come one block
(attention over all tokens, normalization, an MLP with GELU, residual sums), the mean over the
tokens and 12 classes. Every tensor is int8; its scale is taken from the float network on random
frames. Attention is fused by covp, so that the scores of heads x tokens x tokens never exist whole.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covp
from covp.graph.attributes import Elementwise, FullyConnected, Mean, Softmax, Transpose
from covp.graph.graph import Graph, Tensor
from covp.graph.ops.layer_norm_int8 import LayerNormInt8
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.ops.unary import Gelu
from covp.graph.zoo.builder import GraphBuilder

Array = NDArray[Any]
FEATURES, WIDTH, HIDDEN, CLASSES = 40, 32, 64, 12
_HEADS_FIRST = (0, 2, 1, 3)


class Quantizing:
    """Builds an int8 graph beside the float network that gives its scales.

    A value is a pair: the tensor, and what the float network has there for some inputs.
    """

    def __init__(self, name: str, seed: int = 2022) -> None:
        self.builder = GraphBuilder(name)
        self.rng = np.random.default_rng(seed)

    def input(self, shape: tuple[int, ...], samples: Array) -> tuple[Tensor, Array]:
        """The network's input; samples are some values, the first axis counts them."""
        scale, zero_point = _affine(samples)
        return self.builder.input(shape, scale=scale, zero_point=zero_point), samples

    def add(
        self, kind: str, inputs: Sequence[Any], real: Array, attributes: Any = None, **how: Any
    ) -> tuple[Tensor, Array]:
        """An operator whose float result is known."""
        tensors = [value[0] if isinstance(value, tuple) else value for value in inputs]
        if not how:
            how["scale"], how["zero_point"] = _affine(real)
        return self.builder.add(kind, *tensors, attributes=attributes, **how), real

    def move(
        self, kind: str, value: tuple[Tensor, Array], function: Callable[[Array], Array], **how: Any
    ) -> tuple[Tensor, Array]:
        """An operator that keeps the quantization."""
        return self.builder.add(kind, value[0], **how), function(value[1])

    def dense(self, value: tuple[Tensor, Array], outputs: int) -> tuple[Tensor, Array]:
        """A fully connected layer of random weights, per-channel scales."""
        tensor, real = value
        depth = real.shape[-1]
        weights = self.rng.normal(0, 1 / math.sqrt(depth), (outputs, depth))
        bias = self.rng.normal(0, 0.1, outputs)
        scales = np.abs(weights).max(axis=1) / 127
        stored = np.rint(weights / scales[:, None]).astype(np.int8)
        bias_scales = np.float32(tensor.scale) * scales.astype(np.float32)
        constants = [
            self.builder.constant(stored, scales),
            self.builder.constant(np.rint(bias / bias_scales).astype(np.int32), bias_scales),
        ]
        attributes = FullyConnected(keep_num_dims=True)
        return self.add("FULLY_CONNECTED", [value, *constants], real @ weights.T + bias, attributes)

    def norm(self, value: tuple[Tensor, Array]) -> tuple[Tensor, Array]:
        """Layer normalization of the last axis."""
        real = value[1]
        gamma = self.rng.normal(1, 0.1, real.shape[-1:]).astype(np.float32)
        beta = self.rng.normal(0, 0.1, real.shape[-1:]).astype(np.float32)
        centred = real - real.mean(-1, keepdims=True)
        result = centred / np.sqrt(real.var(-1, keepdims=True) + 1e-5) * gamma + beta
        constants = [self.builder.constant(part) for part in (gamma, beta)]
        return self.add("LAYER_NORMALIZATION_INT8", [value, *constants], result, LayerNormInt8())


def _affine(real: Array) -> tuple[float, int]:
    low, high = min(0.0, float(real.min())), max(0.0, float(real.max()))
    scale = float(np.float32((high - low) / 255))
    return scale, int(np.clip(round(-128 - low / scale), -128, 127))


def attention(net: Quantizing, value: tuple[Tensor, Array], heads: int) -> tuple[Tensor, Array]:
    """Projections, heads, scores, softmax, weighted values, joined heads."""
    samples, tokens, width = value[1].shape
    depth = width // heads

    def head(projected: tuple[Tensor, Array]) -> tuple[Tensor, Array]:
        shape = (1, tokens, heads, depth)
        split = net.move(
            "RESHAPE", projected, lambda r: r.reshape(samples, *shape[1:]), shape=shape
        )
        return net.move(
            "TRANSPOSE",
            split,
            lambda r: r.transpose(_HEADS_FIRST),
            attributes=Transpose(_HEADS_FIRST),
        )

    q, k, v = (head(net.dense(value, width)) for _ in range(3))
    scores = net.add(
        "BATCH_MATMUL", [q, k], q[1] @ np.swapaxes(k[1], -1, -2), BatchMatMul(adj_y=True)
    )
    factor = net.builder.constant(np.array([127], np.int8), 1 / (127 * math.sqrt(depth)))
    scaled = net.add("MUL", [scores, factor], scores[1] / math.sqrt(depth), Elementwise())
    powers = np.exp(scaled[1] - scaled[1].max(-1, keepdims=True))
    weights = net.add(
        "SOFTMAX",
        [scaled],
        powers / powers.sum(-1, keepdims=True),
        Softmax(),
        scale=1 / 256,
        zero_point=-128,
    )
    mixed = net.add("BATCH_MATMUL", [weights, v], weights[1] @ v[1], BatchMatMul())
    joined = net.move(
        "TRANSPOSE",
        mixed,
        lambda r: r.transpose(_HEADS_FIRST),
        attributes=Transpose(_HEADS_FIRST),
    )
    shape = (1, tokens, width)
    return net.move("RESHAPE", joined, lambda r: r.reshape(samples, *shape[1:]), shape=shape)


def block(net: Quantizing, value: tuple[Tensor, Array], heads: int) -> tuple[Tensor, Array]:
    """Attention and MLP, each normalized before and added to what it was given."""

    def plus(a: tuple[Tensor, Array], b: tuple[Tensor, Array]) -> tuple[Tensor, Array]:
        return net.add("ADD", [a, b], a[1] + b[1], Elementwise())

    mixed = net.dense(attention(net, net.norm(value), heads), value[1].shape[-1])
    value = plus(value, mixed)
    hidden = net.dense(net.norm(value), HIDDEN)
    erf = np.vectorize(math.erf)
    real = hidden[1] / 2 * (1 + erf(hidden[1] / math.sqrt(2)))
    active = net.add("GELU", [hidden], real, Gelu())
    return plus(value, net.dense(active, value[1].shape[-1]))


def build(tokens: int = 196, heads: int = 4, *, only: str = "") -> Graph:
    """The network.

    Args:
        tokens: frames of the input.
        heads: of the attention; divides 32.
        only: "attention" or "block" for that part alone, on tokens of 32 numbers.
    """
    net = Quantizing(f"transformer_{only or 'kws'}")
    features = WIDTH if only else FEATURES
    samples = net.rng.normal(0, 1, (2, tokens, features))
    value = net.input((1, tokens, features), samples)
    if only:
        value = attention(net, value, heads) if only == "attention" else block(net, value, heads)
        return net.builder.graph(value[0])
    value = net.dense(value, WIDTH)
    places = net.rng.normal(0, 0.3, (1, tokens, WIDTH))
    scale, zero_point = _affine(places)
    stored = np.clip(np.rint(places / scale) + zero_point, -128, 127).astype(np.int8)
    position = net.builder.constant(stored, scale, zero_point)
    value = net.add("ADD", [value, position], value[1] + places, Elementwise())
    value = net.norm(block(net, value, heads))
    value = net.add("MEAN", [value], value[1].mean(axis=1), Mean((1,), False))
    value = net.dense(value, CLASSES)
    powers = np.exp(value[1] - value[1].max(-1, keepdims=True))
    real = powers / powers.sum(-1, keepdims=True)
    value = net.add("SOFTMAX", [value], real, Softmax(), scale=1 / 256, zero_point=-128)
    return net.builder.graph(value[0])


def main() -> None:
    """Compile, run, compare with the reference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", default="cortex-m4")
    parser.add_argument("--tokens", type=int, default=196)
    parser.add_argument("--heads", type=int, default=4)
    given = parser.parse_args()
    graph = build(given.tokens, given.heads)
    program = covp.compile(graph, given.platform)
    x = np.random.default_rng(1).integers(-128, 128, graph.inputs[0].shape, dtype=np.int8)
    with covp.Session(given.platform) as session:
        module = session.load(program)
        found = module.run(x)
        print(session.profile())
        print(session.memory())
    assert np.array_equal(found, program.reference([x])[0])
    print(f"bit-exact; class {int(np.argmax(found))}")


if __name__ == "__main__":
    main()
