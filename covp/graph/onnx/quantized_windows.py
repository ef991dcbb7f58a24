"""Windows over images of quantized values: ONNX's (batch, channels, spatial...) as NHWC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Tensor
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode


class NodeWindows:
    """Kernel, strides, dilations and padding of a node, in height and width.

    Args:
        node: with the attributes that Conv and the pools share.
        spatial: extents of the input's image, one or two.
        kernel: of the weights; None: the attribute.
    """

    def __init__(
        self, node: OnnxNode, spatial: Sequence[int], kernel: Sequence[int] | None = None
    ) -> None:
        rank = len(spatial)
        if rank not in (1, 2):
            raise ModelError(f"windows in {rank} dimensions are not supported; 1 and 2 are")
        shape = node.get("kernel_shape", kernel)
        if shape is None or len(shape) != rank:
            raise ModelError("kernel_shape does not fit the input")
        size, stride, dilation = (
            [int(v) for v in values]
            for values in (
                shape,
                node.get("strides", [1] * rank),
                node.get("dilations", [1] * rank),
            )
        )
        if not len(stride) == len(dilation) == rank or min(*size, *stride, *dilation) < 1:
            raise ModelError("kernel_shape, strides or dilations do not fit the input")
        pads = self._pads(node, spatial, size, stride, dilation)
        self.filter, self.stride, self.dilation = _pair(size), _pair(stride), _pair(dilation)
        (top, bottom), (left, right) = [(0, 0)] * (2 - rank) + pads
        self.padding = Padding(top, bottom, left, right)

    @staticmethod
    def _pads(
        node: OnnxNode,
        spatial: Sequence[int],
        size: list[int],
        stride: list[int],
        dilation: list[int],
    ) -> list[Pair]:
        rank, auto = len(spatial), node.get("auto_pad", "NOTSET")
        stated = [int(v) for v in node.get("pads", [0] * 2 * rank)]
        pads: list[Pair] = [(0, 0)] * rank
        if auto == "NOTSET":
            pads = list(zip(stated[:rank], stated[rank:], strict=True))
        for i, (extent, step) in enumerate(zip(spatial, stride, strict=True)):
            reach = (size[i] - 1) * dilation[i] + 1
            if auto in ("SAME_UPPER", "SAME_LOWER"):
                total = max((-(-extent // step) - 1) * step + reach - extent, 0)
                less = total // 2
                pads[i] = (less, total - less) if auto == "SAME_UPPER" else (total - less, less)
            elif node.get("ceil_mode", 0):
                before, after = pads[i]
                # windows that begin inside the image or its padding
                count = -(-(extent + before + after - reach) // step) + 1
                if (count - 1) * step >= extent + before:
                    count -= 1
                pads[i] = before, max((count - 1) * step + reach - extent - before, after)
        if any(a < 0 or b < 0 for a, b in pads):
            raise ModelError("negative padding is not supported")
        return pads


def _pair(values: list[int]) -> Pair:
    return (1, values[0]) if len(values) == 1 else (values[0], values[1])


def to_image(importer: Importer, tensor: Tensor) -> Tensor:
    """Convert (N, C, W) or (N, C, H, W) to (N, H, W, C)."""
    if len(tensor.shape) == 3:
        moved = importer.transpose(tensor, (0, 2, 1))
        batch, width, channels = moved.shape
        return importer.reshape(moved, (batch, 1, width, channels))
    if len(tensor.shape) != 4:
        raise ModelError(f"an input of shape {tensor.shape}; 3 or 4 dimensions are supported")
    return importer.transpose(tensor, (0, 2, 3, 1))


def from_image(importer: Importer, image: Tensor, rank: int) -> Tensor:
    """Convert (N, H, W, C) back to the ONNX layout with ``rank`` dimensions."""
    batch, height, width, channels = image.shape
    if height == width == 1:
        return importer.reshape(image, (batch, channels, *(1,) * (rank - 2)))
    if rank == 3:
        flat = importer.reshape(image, (batch, width, channels))
        return importer.transpose(flat, (0, 2, 1))
    return importer.transpose(image, (0, 3, 1, 2))


def filters(weights: NDArray[np.int16], groups: int, channels: int) -> NDArray[np.int16]:
    """Convert weights (O, I, H, W) to OHWI, or to 1HWO if each channel is its own group.

    Other groups become one convolution with zeros.
    """
    outputs, depth = weights.shape[:2]
    if groups > 1 and depth == 1:
        return np.ascontiguousarray(weights.transpose(1, 2, 3, 0))
    wide = np.zeros((outputs, channels, *weights.shape[2:]), np.int16)
    for group in range(groups):
        rows = slice(group * outputs // groups, (group + 1) * outputs // groups)
        wide[rows, group * depth : (group + 1) * depth] = weights[rows]
    return np.ascontiguousarray(wide.transpose(0, 2, 3, 1))
