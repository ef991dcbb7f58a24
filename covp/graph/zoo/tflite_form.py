"""Operators whose form in a graph is not that of a TFLite file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Graph, Op, Tensor


def tflite_form(graph: Graph) -> Graph:
    """The graph with such operators as a file has them; the argument stays as it is."""
    return replace(graph, ops=[_FORMS.get(op.kind, _same)(op) for op in graph.ops])


def _same(op: Op) -> Op:
    return op


def _transpose_conv(op: Op) -> Op:
    """The inputs are the output's shape, weights, image and bias."""
    shape = np.array(op.output.shape, np.int32)
    stated = Tensor(f"{op.name}_shape", shape.shape, shape.dtype, None, shape)
    return replace(op, inputs=[stated, op.input(1), op.input(0), *op.inputs[2:]])


def _grouped(op: Op) -> Op:
    """A CONV_2D with fewer input channels in its filters than in its image."""
    a = op.attributes
    (top, bottom), (left, right) = a.padding
    attributes = Conv2D(a.stride, Padding(top, bottom, left, right), a.dilation, a.activation)
    return replace(op, kind="CONV_2D", attributes=attributes)


_FORMS = {"CONV_ND": _grouped, "TRANSPOSE_CONV": _transpose_conv}
