"""MaxPool, AveragePool, LpPool, the global ones, MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.frontend.onnx.converters.moves import padded
from covp.frontend.onnx.converters.registry import register
from covp.frontend.onnx.converters.windows import (
    Geometry,
    channels_first,
    channels_last,
    geometry,
)
from covp.frontend.onnx.importer import Importer
from covp.frontend.onnx.node import Node
from covp.graph.attributes import Mean, Padding, Pool2D
from covp.graph.graph import Tensor
from covp.graph.ops.pooling_nd import MaxUnpool, PoolND

_KINDS = {"MaxPool": "MAX_POOL", "AveragePool": "AVERAGE_POOL", "LpPool": "LP_POOL"}


@register("MaxPool", "AveragePool", "LpPool")
def _pool(node: Node, importer: Importer) -> Sequence[Tensor]:
    source = node.input(0)
    kernel = node.get("kernel_shape")
    if kernel is None or len(kernel) != len(source.shape) - 2:
        raise ModelError(f"kernel_shape {kernel} does not fit the image {source.shape}")
    g = geometry(node, source.shape[2:], kernel)
    size = pooled_size(node, source.shape[2:], g)
    kind, image = _KINDS[node.kind], channels_last(importer, source)
    counted = bool(node.get("count_include_pad", 0)) and any(map(any, g.pads))
    if node.kind != "LpPool" and not node.wants(1) and not counted:
        plain = _plain(image, g, size)
        if plain is not None:
            scale = image.quantization
            result = importer.add(f"{kind}_2D", image, attributes=plain, quantization=scale)
            return [channels_first(importer, result)]
    column_major = bool(node.get("storage_order", 0))
    attributes = PoolND(
        *(g.kernel, g.stride, g.dilation, g.pads, size),
        count_padding=counted,
        p=node.get("p", 2),
        column_major=column_major,
    )
    dtypes: list[Any] = [None, np.int64] if node.wants(1) else [None]
    results = importer.add_many(kind, image, attributes=attributes, dtypes=dtypes)
    return [channels_first(importer, result) for result in results]


def pooled_size(node: Node, space: Sequence[int], g: Geometry) -> tuple[int, ...]:
    """The output's extents; with ceil_mode no window starts in the padding behind the image."""
    size = []
    for axis, extent in enumerate(space):
        (before, after), stride = g.pads[axis], g.stride[axis]
        room = extent + before + after - g.reach[axis]
        count = (-(-room // stride) if node.get("ceil_mode", 0) else room // stride) + 1
        if node.get("ceil_mode", 0) and (count - 1) * stride >= extent + before:
            count -= 1
        size.append(count)
    return tuple(size)


def _plain(image: Tensor, g: Geometry, size: Sequence[int]) -> Pool2D | None:
    """The pool of a float or quantized image with two axes, without dilation, as TFLite has it."""
    known = image.dtype == np.float32 or image.quantization is not None
    if len(size) != 2 or not known or max(g.dilation) > 1:
        return None
    (top, bottom), (left, right) = g.pads
    if min(top, bottom, left, right) < 0 or max(top, bottom) >= g.kernel[0]:
        return None
    if max(left, right) >= g.kernel[1]:
        return None
    # what lies outside does not count, so padding that no window reaches need not be there
    ends = [
        max((size[n] - 1) * g.stride[n] + g.kernel[n] - image.shape[n + 1] - g.pads[n][0], 0)
        for n in (0, 1)
    ]
    padding = Padding(top, ends[0], left, ends[1])
    return Pool2D((g.kernel[0], g.kernel[1]), (g.stride[0], g.stride[1]), padding)


@register("GlobalAveragePool", "GlobalMaxPool")
def _global(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    kind = "MEAN" if node.kind == "GlobalAveragePool" else "REDUCE_MAX"
    axes = tuple(range(2, len(source.shape)))
    return importer.add(kind, source, attributes=Mean(axes, keep_dims=True))


@register("GlobalLpPool")
def _global_norm(node: Node, importer: Importer) -> Tensor:
    image = channels_last(importer, node.input(0))
    space = image.shape[1:-1]
    ones = (1,) * len(space)
    pads = ((0, 0),) * len(space)
    attributes = PoolND(space, ones, ones, pads, ones, p=node.get("p", 2))
    return channels_first(importer, importer.add("LP_POOL", image, attributes=attributes))


@register("MaxUnpool")
def _unpool(node: Node, importer: Importer) -> Tensor:
    """The indices are of the output that the pool's image had; a larger one is padded."""
    source, indices = node.input(0), node.input(1)
    kernel = node.get("kernel_shape")
    rank = len(kernel)
    strides, pads = node.get("strides", [1] * rank), node.get("pads", [0] * 2 * rank)
    space = [
        (source.shape[2 + n] - 1) * strides[n] + kernel[n] - pads[n] - pads[rank + n]
        for n in range(rank)
    ]
    shape = (*source.shape[:2], *space)
    result = importer.add("MAX_UNPOOL", source, indices, attributes=MaxUnpool(shape))
    if node.optional(2) is None:
        return result
    known = node.input(2).data is not None
    wanted = node.integers(2, "the shape") if known else node.stated_shape("the output's shape")
    return padded(importer, result, [(0, w - n) for w, n in zip(wanted, shape, strict=True)])
