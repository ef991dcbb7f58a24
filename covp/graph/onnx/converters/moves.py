"""Operators that move values: Concat, Split, Slice, Pad, Tile, Expand, DepthToSpace ..."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Concatenation, Pad, StridedSlice
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.gather import ReverseSequence
from covp.graph.ops.half_even import UNSIGNED
from covp.graph.ops.placed import DynamicPad, DynamicSlice, MirrorPad, PadMode
from covp.graph.ops.rearrange import Blocks, BroadcastTo, SplitV, Tile, Triangle

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def axis_of(value: int, rank: int) -> int:
    """Return an axis that may count from the end. Raises ModelError outside the rank."""
    if not -rank <= value < rank:
        raise ModelError(f"axis {value} is outside a tensor of rank {rank}")
    return value % rank


def known(node: OnnxNode, *positions: int) -> bool:
    """Return whether the inputs at these positions are constant or left out."""
    return all((t := node.optional(p)) is None or t.data is not None for p in positions)


@register("Concat")
def _concat(node: OnnxNode, importer: Importer) -> Tensor:
    parts = [node.input(position) for position in range(len(node.inputs))]
    axis = axis_of(node.get("axis", 0), len(parts[0].shape))
    # empty parts contribute nothing
    kept = [t for t in parts if t.shape[axis : axis + 1] != (0,)] or parts[:1]
    return (
        kept[0]
        if len(kept) == 1
        else importer.add("CONCATENATION", *kept, attributes=Concatenation(axis))
    )


@register("Split")
def _split(node: OnnxNode, importer: Importer) -> Sequence[Tensor]:
    source = node.input(0)
    axis = axis_of(node.get("axis", 0), len(source.shape))
    extent, count = source.shape[axis], len(node.outputs)
    if not known(node, 1):
        shapes = [shape for shape in node.stated if shape is not None]
        if len(shapes) != count:
            node.stated_shape("the sizes")
            raise ModelError("the sizes are computed at run time; make them constant")
        sizes = [shape[axis] for shape in shapes]
    else:
        most = -(-extent // count)  # the last part is smaller
        given = node.integers_of("split", 1, "the sizes")
        sizes = given or [min(most, max(extent - n * most, 0)) for n in range(count)]
    if len(sizes) != count:
        raise ModelError(f"{len(sizes)} sizes for {count} outputs")
    attributes = SplitV(axis, tuple(sizes))
    return importer.add_many("SPLIT_V", source, attributes=attributes, dtypes=[None] * count)


@register("Slice")
def _slice(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    if node.opset < 10:
        starts, ends = list(node.get("starts", [])), list(node.get("ends", []))
        axes, steps = node.get("axes"), None
    elif known(node, 1, 2, 3, 4):
        starts, ends = node.integers(1, "the starts"), node.integers(2, "the ends")
        axes = node.integers_of("axes", 3, "the axes")
        steps = node.integers_of("steps", 4, "the steps")
    else:
        shape = node.stated_shape("what is sliced")
        inputs = source, node.input(1), node.optional(3), node.optional(4)
        return importer.add("DYNAMIC_SLICE", *inputs, attributes=DynamicSlice(shape))
    rank = len(source.shape)
    slices: list[tuple[int, int | None, int]] = [(0, extent, 1) for extent in source.shape]
    for n, axis in enumerate(axes if axes is not None else range(len(starts))):
        at = axis_of(axis, rank)
        step = steps[n] if steps else 1
        if step == 0:
            raise ModelError(f"step 0 on axis {at}")
        start, stop, step = slice(starts[n], ends[n], step).indices(source.shape[at])
        slices[at] = start, None if stop < 0 else stop, step
    return importer.add("STRIDED_SLICE", source, attributes=StridedSlice(tuple(slices)))


@register("Pad")
def _pad(node: OnnxNode, importer: Importer) -> Tensor:
    source, mode = node.input(0), node.get("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise ModelError(f"mode {mode} is not supported; known: constant, reflect, edge, wrap")
    value = node.optional(2)
    fill = node.get("value", 0.0)
    if value is not None and value.data is not None and value.size:
        fill = value.data.reshape(-1)[0].item()
    fill -= UNSIGNED * node.get("unsigned", 0)
    if not known(node, 1, 3) or (mode == "constant" and not known(node, 2)):
        shape = _padded_shape(node) if known(node, 1, 3) else node.stated_shape("the pads")
        if known(node, 2):
            value = importer.constant(np.array(fill, source.dtype)) if fill else None
        inputs = source, node.input(1), value, node.optional(3)
        return importer.add("DYNAMIC_PAD", *inputs, attributes=DynamicPad(shape, mode))
    return pad(importer, source, _pads(node), mode, fill)


def _pads(node: OnnxNode) -> list[tuple[int, int]]:
    rank = len(node.input(0).shape)
    flat = node.integers_of("pads", 1, "the pads") or []
    axes = node.integers(3, "the axes") if node.optional(3) is not None else range(rank)
    if len(flat) != 2 * len(axes):
        raise ModelError(f"pads {flat} do not fit {len(axes)} axes")
    pads = [(0, 0)] * rank
    for n, axis in enumerate(axes):
        pads[axis_of(axis, rank)] = flat[n], flat[len(axes) + n]
    return pads


def _padded_shape(node: OnnxNode) -> tuple[int, ...]:
    pads = _pads(node)
    return tuple(n + sum(pair) for n, pair in zip(node.input(0).shape, pads, strict=True))


def pad(
    importer: Importer,
    source: Tensor,
    pads: Sequence[tuple[int, int]],
    mode: PadMode = "constant",
    value: float = 0.0,
) -> Tensor:
    """Return the tensor with margins; a negative pad takes elements away, first."""
    if any(min(pair) < 0 for pair in pads):
        kept = [
            (max(-before, 0), n - max(-after, 0), 1)
            for n, (before, after) in zip(source.shape, pads, strict=True)
        ]
        source = importer.add("STRIDED_SLICE", source, attributes=StridedSlice(tuple(kept)))
    margins = tuple((max(before, 0), max(after, 0)) for before, after in pads)
    if not any(map(any, margins)):
        return source
    if mode == "constant":
        scaled = source.quantization
        return importer.add("PAD", source, attributes=Pad(margins, value), quantization=scaled)
    return importer.add("MIRROR_PAD", source, attributes=MirrorPad(margins, mode))


@register("Tile")
def _tile(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    if known(node, 1):
        multiples = node.integers(1, "the repeats")
    else:
        shape = node.stated_shape("the repeats")
        multiples = [n // m for n, m in zip(shape, source.shape, strict=True)]
    return importer.add("TILE", source, attributes=Tile(tuple(multiples)))


@register("Expand")
def _expand(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    wanted = (
        tuple(node.integers(1, "the shape")) if known(node, 1) else node.stated_shape("the shape")
    )
    try:
        shape = tuple(np.broadcast_shapes(source.shape, wanted))
    except ValueError:
        raise ModelError(f"{source.shape} cannot be expanded to {wanted}") from None
    if shape == source.shape:
        return source
    return importer.add("BROADCAST_TO", source, attributes=BroadcastTo(shape))


@register("DepthToSpace", "SpaceToDepth")
def _blocks(node: OnnxNode, importer: Importer) -> Tensor:
    mode = node.get("mode", "DCR").lower()
    if mode not in ("dcr", "crd"):
        raise ModelError(f"mode {mode} is not supported; known: DCR, CRD")
    kind = "DEPTH_TO_SPACE" if node.kind == "DepthToSpace" else "SPACE_TO_DEPTH"
    image = importer.transpose(node.input(0), TO_NHWC)
    moved = importer.add(kind, image, attributes=Blocks(node.get("blocksize"), mode))
    return importer.transpose(moved, TO_NCHW)


@register("Trilu")
def _triangle(node: OnnxNode, importer: Importer) -> Tensor:
    upper = bool(node.get("upper", 1))
    if not known(node, 1):
        return importer.add("TRILU", node.input(0), node.input(1), attributes=Triangle(upper))
    k = node.integers(1, "the diagonal")[0] if node.optional(1) is not None else 0
    return importer.add("TRILU", node.input(0), attributes=Triangle(upper, k))


@register("ReverseSequence")
def _reverse_sequence(node: OnnxNode, importer: Importer) -> Tensor:
    rank = len(node.input(0).shape)
    attributes = ReverseSequence(
        axis_of(node.get("time_axis", 0), rank), axis_of(node.get("batch_axis", 1), rank)
    )
    return importer.add("REVERSE_SEQUENCE", node.input(0), node.input(1), attributes=attributes)
