"""PAD before a convolution becomes the convolution's own padding."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.attributes import Pad, Padding
from covp.graph.graph import Graph, Op


def fuse_pads(graph: Graph) -> None:
    """Fuse where that is bit-exact: rows and columns padded with the stored value of zero."""
    for op in graph.ops:
        if op.kind not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            continue
        pad = graph.producer(op.input(0))
        if pad is not None and pad.kind in ("PAD", "PADV2") and _may_fuse(graph, pad):
            (top, bottom), (left, right) = pad.attributes.paddings[1:3]
            own = op.attributes.padding
            padding = Padding(
                own.top + top, own.bottom + bottom, own.left + left, own.right + right
            )
            op.attributes = replace(op.attributes, padding=padding)
            op.inputs[0] = pad.inputs[0]
    # pads that are unused now are removed as dead code


def _may_fuse(graph: Graph, pad: Op) -> bool:
    attributes: Pad = pad.attributes
    source, result = pad.input(0), pad.output
    if len(source.shape) != 4 or any(map(any, (attributes.paddings[0], attributes.paddings[3]))):
        return False
    if source.quantization is None or result.quantization is None:
        return attributes.value == 0.0
    same = (source.scale, source.zero_point) == (result.scale, result.zero_point)
    return same and attributes.value == source.zero_point
