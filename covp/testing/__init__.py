"""Layers, quantizations and tensors as Hypothesis strategies.

    from hypothesis import given
    from covp.testing import layers

    @given(layers.convolutions("CONV_2D", dtype="int8", kernel=(3, 3)))
    def test_mine(layer):
        op, inputs = layer.op(), layer.inputs()

A drawn layer is a few numbers: Hypothesis shrinks it, and its repr is Python text that makes it
again, values and scales included. `covp.verify` draws from here.

- `case`, `convolution_case`, `cases`: the layers as dataclasses, `ConvCase` and the others;
- `layers`: strategies of them, for each kind of operator;
- `quantizations`: strategies of scales, zero points and `covp.graph.graph.Quantization`;
- `tensors`: tensors written in one line, strategies of shapes, tensors and their values.
"""

from covp.testing import layers, quantizations, tensors
from covp.testing.case import Case, Layer
from covp.testing.cases import (
    ConcatenationCase,
    ElementwiseCase,
    MatMulCase,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
)
from covp.testing.convolution_case import ConvCase

__all__ = [
    "Case",
    "ConcatenationCase",
    "ConvCase",
    "ElementwiseCase",
    "Layer",
    "MatMulCase",
    "OperatorCase",
    "PoolCase",
    "SoftmaxCase",
    "layers",
    "quantizations",
    "tensors",
]
