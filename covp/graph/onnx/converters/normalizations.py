"""Normalizations, and the functions of rows that go with classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Elementwise, Mean, Softmax
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.reductions import axis_of
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.normalization import LayerNormalization, LocalResponse, LpNormalization

_KINDS = {
    "Hardmax": ("HARDMAX", None),
    "LogSoftmax": ("LOG_SOFTMAX", None),
    "Softmax": ("SOFTMAX", Softmax()),
}


def scale_and_shift(
    source: Tensor, scale: Tensor, bias: Tensor | None, importer: Importer
) -> Tensor:
    """Add source * scale + bias, broadcast."""
    result = importer.add("MUL", source, scale, attributes=Elementwise())
    return result if bias is None else importer.add("ADD", result, bias, attributes=Elementwise())


def with_axis_last(source: Tensor, axis: int, importer: Importer) -> tuple[Tensor, Sequence[int]]:
    """Return the tensor with an axis moved to the end, and the permutation that moves it back.

    Channels of images are last in the internal layout: such a transpose cancels with its like.
    """
    rank = len(source.shape)
    order = [*(i for i in range(rank) if i != axis), axis]
    back = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return importer.transpose(source, order), back


@register(*_KINDS)
def _along_an_axis(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert softmaxes along an axis; before opset 13 all axes from it on are one row."""
    kind, attributes = _KINDS[node.kind]
    source = node.input(0)
    axis = axis_of(node.get("axis", -1 if node.opset >= 13 else 1), len(source.shape))
    if node.opset < 13:
        rows = math.prod(source.shape[:axis]), math.prod(source.shape[axis:])
        flat = importer.reshape(source, rows)
        return importer.reshape(importer.add(kind, flat, attributes=attributes), source.shape)
    moved, back = with_axis_last(source, axis, importer)
    return importer.transpose(importer.add(kind, moved, attributes=attributes), back)


@register("LpNormalization")
def _lp(node: OnnxNode, importer: Importer) -> Tensor:
    source, p = node.input(0), node.get("p", 2)
    if p not in (1, 2):
        raise ModelError(f"the norm of order {p} is not supported; 1 and 2 are")
    moved, back = with_axis_last(source, axis_of(node.get("axis", -1), len(source.shape)), importer)
    result = importer.add("LP_NORMALIZATION", moved, attributes=LpNormalization(p))
    return importer.transpose(result, back)


@register("LRN")
def _local_response(node: OnnxNode, importer: Importer) -> Tensor:
    size = node.get("size")
    how = LocalResponse(
        before=(size - 1) // 2,
        after=size // 2,
        bias=node.get("bias", 1.0),
        alpha=node.get("alpha", 1e-4) / size,
        beta=node.get("beta", 0.75),
    )
    moved, back = with_axis_last(node.input(0), 1, importer)
    return importer.transpose(
        importer.add("LOCAL_RESPONSE_NORMALIZATION", moved, attributes=how), back
    )


@register("LayerNormalization")
def _layer(node: OnnxNode, importer: Importer) -> list[Tensor]:
    source, scale, bias = node.input(0), node.input(1), node.optional(2)
    axis = axis_of(node.get("axis", -1), len(source.shape))
    how = LayerNormalization(axis, node.get("epsilon", 1e-5))
    outputs = [None] * max(i + 1 for i in range(3) if node.wants(i))
    row = source.shape[axis:]
    if scale.shape == row and (bias is None or bias.shape == row):
        return importer.add_many(
            "LAYER_NORMALIZATION", source, scale, bias, attributes=how, dtypes=outputs
        )
    first, *figures = importer.add_many(
        "LAYER_NORMALIZATION", source, attributes=how, dtypes=outputs
    )
    return [scale_and_shift(first, scale, bias, importer), *figures]


@register("RMSNormalization")
def _rms(node: OnnxNode, importer: Importer) -> Tensor:
    source, scale = node.input(0), node.input(1)
    axis = axis_of(node.get("axis", -1), len(source.shape))
    how = LayerNormalization(axis, node.get("epsilon", 1e-5))
    row = source.shape[axis:]
    if scale.shape == row:
        return importer.add("RMS_NORMALIZATION", source, scale, attributes=how)
    ones = importer.constant(np.ones(row, source.dtype))
    return scale_and_shift(
        importer.add("RMS_NORMALIZATION", source, ones, attributes=how), scale, None, importer
    )


@register("InstanceNormalization", "GroupNormalization")
def _normalize_groups(node: OnnxNode, importer: Importer) -> Tensor:
    """Normalize each group of channels of each image; then scale and shift each channel.

    Before opset 21 a group had one scale and one bias.
    """
    source, scale, bias = node.input(0), node.input(1), node.input(2)
    batch, channels, *inside = source.shape
    groups = node.get("num_groups", channels)
    if groups < 1 or channels % groups:
        raise ModelError(f"{channels} channels do not divide among {groups} groups")
    rows = importer.reshape(source, (batch * groups, channels // groups * math.prod(inside)))
    how = LayerNormalization(1, node.get("epsilon", 1e-5))
    result = importer.add("LAYER_NORMALIZATION", rows, attributes=how)
    per = scale.size
    result = importer.reshape(result, (batch, per, channels // per * math.prod(inside)))
    factors = [importer.reshape(t, (per, 1)) for t in (scale, bias)]
    return importer.reshape(scale_and_shift(result, factors[0], factors[1], importer), source.shape)


@register("BatchNormalization")
def _batch(node: OnnxNode, importer: Importer) -> list[Tensor]:
    """Convert to one product and one sum per channel, folded where the figures are constant."""
    source, *vectors = (node.input(position) for position in range(5))
    moved, back = with_axis_last(source, min(1, len(source.shape) - 1), importer)
    mean, variance = vectors[2:]
    running: list[Tensor] = []
    if node.get("training_mode", 0):
        mean, variance = _figures(moved, importer)
        running = _running_figures(node, (mean, variance), importer)
    epsilon = importer.constant(np.array(node.get("epsilon", 1e-5), source.dtype))
    deviation = importer.add("ADD", variance, epsilon, attributes=Elementwise())
    inverse = importer.add("RSQRT", deviation)
    scale = importer.add("MUL", vectors[0], inverse, attributes=Elementwise())
    shift = importer.add("MUL", mean, scale, attributes=Elementwise())
    bias = importer.add("SUB", vectors[1], shift, attributes=Elementwise())
    return [importer.transpose(scale_and_shift(moved, scale, bias, importer), back), *running]


def _figures(source: Tensor, importer: Importer) -> tuple[Tensor, Tensor]:
    """Add the mean and variance of each channel of a batch; channels are last."""
    over = Mean(tuple(range(len(source.shape) - 1)), False)
    mean = importer.add("MEAN", source, attributes=over)
    distance = importer.add("SQUARED_DIFFERENCE", source, mean)
    return mean, importer.add("MEAN", distance, attributes=over)


def _running_figures(
    node: OnnxNode, figures: tuple[Tensor, Tensor], importer: Importer
) -> list[Tensor]:
    momentum = node.get("momentum", 0.9)
    results = []
    for position, figure in zip((3, 4), figures, strict=True):
        old, new = (
            importer.add(
                "MUL",
                tensor,
                importer.constant(np.array(share, tensor.dtype)),
                attributes=Elementwise(),
            )
            for tensor, share in ((node.input(position), momentum), (figure, 1 - momentum))
        )
        results.append(importer.add("ADD", old, new, attributes=Elementwise()))
    return results
