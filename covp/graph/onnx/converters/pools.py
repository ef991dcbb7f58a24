"""MaxPool, AveragePool, LpPool, the global ones, MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Mean, Padding, Pool2D
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.moves import pad
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.converters.windows import (
    Geometry,
    channels_first,
    channels_last,
    geometry,
)
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.pooling_nd import MaxUnpool, PoolND

_KINDS = {"MaxPool": "MAX_POOL", "AveragePool": "AVERAGE_POOL", "LpPool": "LP_POOL"}


@register("MaxPool", "AveragePool", "LpPool")
def _pool(node: OnnxNode, importer: Importer) -> Sequence[Tensor]:
    source = node.input(0)
    kernel = node.get("kernel_shape")
    if kernel is None or len(kernel) != len(source.shape) - 2:
        raise ModelError(f"kernel_shape {kernel} does not fit the image {source.shape}")
    g = geometry(node, source.shape[2:], kernel, crops=True)
    size = pooled_size(node, source.shape[2:], g)
    kind, image = _KINDS[node.kind], channels_last(importer, source)
    counted = bool(node.get("count_include_pad", 0)) and any(map(any, g.pads))
    if node.kind != "LpPool" and not node.wants(1) and not counted:
        found = _plain(importer, f"{kind}_2D", image, g, size)
        if found is not None:
            return [channels_first(importer, found)]
    column_major = bool(node.get("storage_order", 0))
    attributes = PoolND(
        *(g.kernel, g.stride, g.dilation, g.pads, size),
        count_padding=counted,
        p=_exponent(node),
        column_major=column_major,
    )
    dtypes: list[Any] = [None, np.int64] if node.wants(1) else [None]
    results = importer.add_many(kind, image, attributes=attributes, dtypes=dtypes)
    return [channels_first(importer, result) for result in results]


def _exponent(node: OnnxNode) -> int:
    """Return p of a norm. Raises ModelError where the norm does not exist."""
    p = int(node.get("p", 2))
    if p < 1:
        raise ModelError(f"p is {p}; a norm has at least 1")
    return p


def pooled_size(node: OnnxNode, space: Sequence[int], g: Geometry) -> tuple[int, ...]:
    """Return the output's extents; with ceil_mode no window starts in padding after the image."""
    size = []
    for axis, extent in enumerate(space):
        (before, after), stride = g.pads[axis], g.stride[axis]
        room = extent + before + after - g.reach[axis]
        count = (-(-room // stride) if node.get("ceil_mode", 0) else room // stride) + 1
        if node.get("ceil_mode", 0) and (count - 1) * stride >= extent + before:
            count -= 1
        if count < 1:
            raise ModelError(f"a window of {g.kernel} leaves nothing of {tuple(space)}")
        size.append(count)
    return tuple(size)


def _plain(
    importer: Importer, kind: str, image: Tensor, g: Geometry, size: Sequence[int]
) -> Tensor | None:
    """Add TFLite's pool of an image; an image with one axis has height 1."""
    known = image.dtype == np.float32 or image.quantization is not None
    if len(size) > 2 or not known or max(g.dilation) > 1:
        return None
    if any(min(pads) < 0 or max(pads) >= k for pads, k in zip(g.pads, g.kernel, strict=True)):
        return None
    # what lies outside does not count, so padding that no window reaches need not be there
    ends = [
        max((count - 1) * g.stride[n] + g.kernel[n] - image.shape[n + 1] - g.pads[n][0], 0)
        for n, count in enumerate(size)
    ]
    line = len(size) == 1
    kernel, stride = ([1] * line + list(values) for values in (g.kernel, g.stride))
    starts, ends = [0] * line + [pads[0] for pads in g.pads], [0] * line + ends
    padding = Padding(starts[0], ends[0], starts[1], ends[1])
    pool = Pool2D((kernel[0], kernel[1]), (stride[0], stride[1]), padding)
    if line:
        image = importer.reshape(image, (image.shape[0], 1, *image.shape[1:]))
    result = importer.add(kind, image, attributes=pool, quantization=image.quantization)
    return importer.reshape(result, (result.shape[0], *result.shape[2:])) if line else result


@register("GlobalAveragePool", "GlobalMaxPool")
def _global(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    kind = "MEAN" if node.kind == "GlobalAveragePool" else "REDUCE_MAX"
    axes = tuple(range(2, len(source.shape)))
    return importer.add(kind, source, attributes=Mean(axes, keep_dims=True))


@register("GlobalLpPool")
def _global_norm(node: OnnxNode, importer: Importer) -> Tensor:
    image = channels_last(importer, node.input(0))
    space = image.shape[1:-1]
    ones = (1,) * len(space)
    pads = ((0, 0),) * len(space)
    attributes = PoolND(space, ones, ones, pads, ones, p=_exponent(node))
    return channels_first(importer, importer.add("LP_POOL", image, attributes=attributes))


@register("MaxUnpool")
def _unpool(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert MaxUnpool; indices are of the pool's image; a larger output is padded."""
    source, indices = node.input(0), node.input(1)
    kernel = node.get("kernel_shape", [])
    if len(kernel) != len(source.shape) - 2:
        raise ModelError(f"kernel_shape {kernel} does not fit the image {source.shape}")
    g = geometry(node, source.shape[2:], kernel)
    space = [
        (source.shape[2 + n] - 1) * g.stride[n] + kernel[n] - sum(g.pads[n])
        for n in range(len(kernel))
    ]
    shape = (*source.shape[:2], *space)
    result = importer.add("MAX_UNPOOL", source, indices, attributes=MaxUnpool(shape))
    if node.optional(2) is None:
        return result
    known = node.input(2).data is not None
    wanted = node.integers(2, "the shape") if known else node.stated_shape("the output's shape")
    return pad(importer, result, [(0, w - n) for w, n in zip(wanted, shape, strict=True)])
