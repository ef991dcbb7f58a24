"""Conv and ConvTranspose: geometry, and the layout that graphs have (channels last)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Conv2D, DepthwiseConv2D, Padding, Pair
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import MOST_BYTES, Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.values import check_size
from covp.graph.ops.windows import ConvND, TransposeConv

_MOST_TAPS = 1 << 16


@dataclass(frozen=True)
class Geometry:
    """The window of a node, for each axis of space: all that its attributes say."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[Pair, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Elements that the window spans."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))


def geometry(
    node: OnnxNode, space: Sequence[int], kernel: Sequence[int], crops: bool = False
) -> Geometry:
    """Return the window; SAME paddings as the ONNX specification of auto_pad computes them.

    Args:
        node: with the attributes.
        space: extents of the image.
        kernel: extents of the window.
        crops: a SAME padding may be negative where strides are larger than the window. ONNX's
            formula gives that for every operator; onnxruntime follows it in pools alone.

    Raises:
        ModelError: the attributes do not fit the image's axes.
    """
    rank = len(space)
    if len(kernel) != rank or not 0 < math.prod(kernel) <= _MOST_TAPS or min(kernel) < 1:
        raise ModelError(f"a kernel of {list(kernel)} does not fit {rank} axes")
    stride = _per_axis(node, "strides", rank)
    dilation = _per_axis(node, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    auto = node.get("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"auto_pad {auto} is unknown")
    pads = [(0, 0)] * rank
    if auto == "NOTSET":
        flat = list(node.get("pads", [0] * 2 * rank))
        if len(flat) != 2 * rank:
            raise ModelError(f"pads {flat} do not fit {rank} axes")
        pads = list(zip(flat[:rank], flat[rank:], strict=True))
    elif auto != "VALID":
        for axis, extent in enumerate(space):
            outputs = -(-extent // stride[axis])
            total = (outputs - 1) * stride[axis] + reach[axis] - extent
            pads[axis] = split_padding(total if crops else max(total, 0), auto)
    padded = [n + sum(pair) for n, pair in zip(space, pads, strict=True)]
    if max(padded) > 0:  # others leave nothing, which is said where it is known of what
        check_size([max(n, 1) for n in padded], np.dtype(np.float32), MOST_BYTES, "a padded image")
    return Geometry(tuple(kernel), stride, dilation, tuple(pads))


def split_padding(total: int, auto: str) -> Pair:
    """Split ``total`` into padding before and after; the odd element is where ``auto`` says."""
    before = int((total + (auto == "SAME_LOWER")) / 2)  # cut, as C divides
    return before, total - before


def _per_axis(node: OnnxNode, name: str, rank: int) -> tuple[int, ...]:
    values = tuple(node.get(name, [1] * rank))
    if len(values) != rank or min(values, default=1) < 1 or max(values, default=1) >= 2**31:
        raise ModelError(f"{name} {list(values)} do not fit {rank} axes")
    return values


def channels_last(importer: Importer, image: Tensor) -> Tensor:
    """Transpose (batch, channels, *space) to (batch, *space, channels)."""
    rank = len(image.shape)
    if rank < 3:
        raise ModelError(
            f"shape {image.shape} is not an image: batch, channels and space are needed"
        )
    return importer.transpose(image, (0, *range(2, rank), 1))


def channels_first(importer: Importer, image: Tensor) -> Tensor:
    """Return the reverse of `channels_last`."""
    rank = len(image.shape)
    return importer.transpose(image, (0, rank - 1, *range(1, rank - 1)))


@register("Conv")
def _conv(node: OnnxNode, importer: Importer) -> Tensor:
    source, weights, bias = node.input(0), node.input(1), node.optional(2)
    g = geometry(node, source.shape[2:], node.get("kernel_shape", weights.shape[2:]))
    groups, channels = node.get("group", 1), source.shape[1]
    if g.kernel != weights.shape[2:] or weights.shape[1] * groups != channels:
        raise ModelError(f"weights {weights.shape} do not fit the image {source.shape}")
    padded = [n + sum(pads) for n, pads in zip(source.shape[2:], g.pads, strict=True)]
    if any(reach > n for reach, n in zip(g.reach, padded, strict=True)):
        raise ModelError(f"its window spans {g.reach}, its padded image only {tuple(padded)}")
    image = channels_last(importer, source)
    filters = channels_last(importer, weights)
    constant = filters.data is not None and (bias is None or bias.data is not None)
    plane = len(g.kernel) < 3 and min(min(pair) for pair in g.pads) >= 0
    if constant and plane and (groups == 1 or groups == channels):
        return _conv2d(importer, image, filters, bias, g, groups)
    attributes = ConvND(g.stride, g.pads, g.dilation, groups)
    result = importer.add("CONV_ND", image, filters, bias, attributes=attributes)
    return channels_first(importer, result)


def _conv2d(
    importer: Importer,
    image: Tensor,
    filters: Tensor,
    bias: Tensor | None,
    g: Geometry,
    groups: int,
) -> Tensor:
    """Add CONV_2D or DEPTHWISE_CONV_2D; an image with one axis has height 1."""
    line = len(g.kernel) == 1
    one = (1,) if line else ()
    stride, dilation = _pair((*one, *g.stride)), _pair((*one, *g.dilation))
    (top, bottom), (left, right) = ((0, 0), *g.pads) if line else g.pads
    padding = Padding(top, bottom, left, right)
    if line:
        image = importer.reshape(image, (image.shape[0], 1, *image.shape[1:]))
        filters = importer.reshape(filters, (filters.shape[0], 1, *filters.shape[1:]))
    attributes: Conv2D | DepthwiseConv2D
    if groups == 1:
        kind, attributes = "CONV_2D", Conv2D(stride, padding, dilation)
    else:
        kind = "DEPTHWISE_CONV_2D"
        filters = importer.transpose(filters, (3, 1, 2, 0))
        multiplier = filters.shape[3] // image.shape[3]
        attributes = DepthwiseConv2D(stride, padding, dilation, multiplier)
    result = importer.add(kind, image, filters, bias, attributes=attributes)
    if line:
        result = importer.reshape(result, (result.shape[0], *result.shape[2:]))
    return channels_first(importer, result)


def _pair(values: tuple[int, ...]) -> Pair:
    return values[0], values[1]


@register("ConvTranspose")
def _conv_transpose(node: OnnxNode, importer: Importer) -> Tensor:
    source, weights, bias = node.input(0), node.input(1), node.optional(2)
    space, kernel = source.shape[2:], weights.shape[2:]
    rank, groups = len(space), node.get("group", 1)
    if weights.shape[0] != source.shape[1] or source.shape[1] % groups:
        raise ModelError(f"weights {weights.shape} do not fit the image {source.shape}")
    stride, dilation = _per_axis(node, "strides", rank), _per_axis(node, "dilations", rank)
    before, size = _transposed_size(node, space, kernel, stride, dilation)
    # (groups * channels, outputs, *kernel) to (groups * outputs, *kernel, channels)
    outputs, depth = weights.shape[1], weights.shape[0] // groups
    filters = importer.reshape(weights, (groups, depth, outputs, *kernel))
    filters = importer.transpose(filters, (0, 2, *range(3, 3 + rank), 1))
    filters = importer.reshape(filters, (groups * outputs, *kernel, depth))
    image = channels_last(importer, source)
    attributes = TransposeConv(stride, before, size, dilation, groups)
    result = importer.add("TRANSPOSE_CONV", image, filters, bias, attributes=attributes)
    return channels_first(importer, result)


def _transposed_size(
    node: OnnxNode,
    space: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the elements cut off before each axis, and the extents of the output."""
    rank, auto = len(space), node.get("auto_pad", "NOTSET")
    more = node.get("output_padding", [0] * rank)
    wanted = node.get("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(space, stride, strict=True)]
    flat = node.get("pads", [0] * 2 * rank)
    if len(flat) != 2 * rank or any(len(v) != rank for v in (more, wanted or more)):
        raise ModelError(f"pads, output_padding or output_shape do not fit {rank} axes")
    before, size = [], []
    for axis in range(rank):
        whole = (space[axis] - 1) * stride[axis] + more[axis] + (kernel[axis] - 1) * dilation[axis]
        if wanted is not None:
            total = whole + 1 - wanted[axis]
            # the specification puts the odd element on the opposite side to convolutions
            less, larger = total // 2, total - total // 2
            before.append(less if auto == "SAME_UPPER" else larger)
            size.append(wanted[axis])
        else:
            before.append(flat[axis])
            size.append(whole + 1 - flat[axis] - flat[rank + axis])
    return tuple(before), tuple(size)
