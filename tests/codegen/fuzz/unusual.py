"""`Unusual`: a layer of covp.testing with numbers at the ends of their ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.graph.attributes import LeakyRelu
from covp.graph.graph import Graph, Op
from covp.testing import layers
from covp.testing.case import Layer
from covp.testing.contents import Content
from covp.testing.quantizations import affine
from covp.testing.tensors import filled

Bias = Literal["usual", "large", "limits"]


@dataclass(frozen=True)
class Unusual:
    """A layer, its scales, bias and inputs pushed to extremes; its repr makes it again.

    Attributes:
        layer: a case of `covp.testing`.
        exponent: the real factor from sums to outputs is divided by two to this power.
        bias: "large" is up to 2**30 in magnitude, "limits" at the ends of int32.
        content: of the inputs.
        schedule: picks one of the kernel's schedules, modulo their number; 0 is the default.
    """

    layer: Layer
    exponent: int = 0
    bias: Bias = "usual"
    content: Content = "random"
    schedule: int = 0

    def graph(self) -> Graph:
        """The layer alone."""
        graph = self.layer.graph()
        op = graph.ops[0]
        if op.output.quantization is not None and op.kind in _SCALED:
            self._rescale(op)
        return graph

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        if self.content == "random":
            return self.layer.inputs()
        rng = np.random.default_rng(self.layer.seed + 1)
        return [filled(tensor, rng, self.content) for tensor in self.layer.graph().inputs]

    def _rescale(self, op: Op) -> None:
        factor = np.float32(2.0**-self.exponent)
        if op.kind not in layers.CONVOLUTIONS:
            out = op.output
            out.quantization = affine(np.float32(out.scale) / factor, out.zero_point)
            return
        weights, bias = op.input(1), op.inputs[2]
        scales = weights.quantization
        assert scales is not None
        weights.quantization = affine(scales.scale * factor, 0, scales.axis)
        if bias is not None:
            product = np.float32(op.input(0).scale) * weights.quantization.scale
            bias.quantization = affine(product)
            bias.data = self._biases(bias.shape)

    def _biases(self, shape: tuple[int, ...]) -> NDArray[np.int32]:
        rng = np.random.default_rng(self.layer.seed + 3)
        if self.bias == "usual":
            return rng.integers(-5000, 5000, shape, np.int32)
        if self.bias == "large":
            magnitudes = 2.0 ** rng.uniform(12, 30, shape)
            return np.asarray(magnitudes * rng.choice([-1, 1], shape), np.int32)
        offsets = rng.choice([0, 1, 500, 40_000, 300_000], shape)
        ends = np.where(rng.random(shape) < 0.5, -(2**31) + offsets, 2**31 - 1 - offsets)
        return np.asarray(ends, np.int32)


_SCALED = frozenset(
    {*layers.CONVOLUTIONS, "MUL", "MEAN", "LEAKY_RELU", "RELU", "RELU6", "QUANTIZE"}
)
_CONTENTS = st.sampled_from(["random", "random", "extreme", "lowest", "highest"])
_EXPONENTS = st.one_of(st.just(0), st.integers(-4, 8), st.integers(-18, 28))

_WEIGHTS: dict[str, Any] = {
    "max_size": 11,
    "max_kernel": 5,
    "dtype": "int8",
    "activation": layers.ACTIVATIONS,
    "padding": st.none() | layers.paddings(4),
    "dilation": st.tuples(st.integers(1, 3), st.integers(1, 3)),
    "stride": st.tuples(st.integers(1, 4), st.integers(1, 4)),
    "bias": st.sampled_from([True, True, True, False]),
    "per_channel": st.booleans(),
    "weight_limit": st.sampled_from([127, 127, 20, 3]),
    "zeros": st.sampled_from([0.0, 0.0, 0.5, 0.95]),
    "extreme": st.booleans(),
}
_WEIGHTED = layers.convolutions(**_WEIGHTS)
_IN_FILES = layers.convolutions(
    "CONV_2D", "DEPTHWISE_CONV_2D", **(_WEIGHTS | {"padding": None, "bias": True})
)
_FULL = layers.convolutions(
    "FULLY_CONNECTED", max_channels=130, dtype="int8", activation=layers.ACTIVATIONS
)
_SLOPES = st.builds(LeakyRelu, st.floats(-4, 4, width=32))
_OTHERS = st.one_of(
    layers.elementwise(broadcast=True, activation=layers.ACTIVATIONS),
    layers.elementwise(
        activation=layers.ACTIVATIONS, scales=st.tuples(*[st.floats(2**-12, 16, width=32)] * 3)
    ),
    layers.pools(max_filter=7, activation=layers.ACTIVATIONS, zero_point=st.integers(-128, 127)),
    layers.softmaxes(max_depth=700, rows=st.integers(1, 2)),
    layers.functions(),
    layers.functions("LEAKY_RELU", attributes=_SLOPES),
    layers.layers(),
)


def unusual() -> st.SearchStrategy[Unusual]:
    """Layers of all kinds, half of them with weights, with any of their schedules."""
    return _unusual((_WEIGHTED, _WEIGHTED, _FULL, _OTHERS, _OTHERS), schedules=True)


def as_litert() -> st.SearchStrategy[Unusual]:
    """Those that a TFLite file can hold and that LiteRT computes as TFLM does."""
    return _unusual((_IN_FILES, _OTHERS.filter(_is_litert)), schedules=False)


def _is_litert(layer: Layer) -> bool:
    # it rounds once in FULLY_CONNECTED, has tables from float functions, and copies bytes of other
    # scales in CONCATENATION; a CONV_2D without bias it rejects, other paddings no file states
    kinds = {*layers.CONVOLUTIONS, "LOGISTIC", "TANH", "CONCATENATION"}
    return layer.kind not in kinds


def _unusual(
    drawn: tuple[st.SearchStrategy[Any], ...], schedules: bool
) -> st.SearchStrategy[Unusual]:
    return st.builds(
        Unusual,
        # one_of would count each kind within as one choice
        st.sampled_from(drawn).flatmap(lambda kinds: kinds),
        _EXPONENTS,
        st.sampled_from(["usual", "large", "limits"]),
        _CONTENTS,
        st.integers(0, 10_000) if schedules else st.just(0),
    )
