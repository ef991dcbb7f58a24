"""`layer_key` and `structure_key`: what a layer is recorded under, with and without its weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covp.base.cache import content_key
from covp.graph.graph import TFLM, Op, Tensor
from covp.graph.ops.tiled_attention import TiledAttention


def layer_key(op: Op) -> str:
    """Return a hash of all that decides a kernel: kind, shapes, constants, how it rounds."""
    parts: list[str | bytes] = [op.kind, _attributes(op, layer_key)]
    for tensor in (*op.inputs, *op.outputs):
        parts += _tensor_parts(tensor)
    return content_key(*parts)


def structure_key(op: Op) -> str:
    """Return a hash that layers with other weights share: kind, attributes, shapes and types.

    Of a tensor's quantization only the form counts: none, one scale, or one per channel.
    """
    tensors = (*op.inputs, *op.outputs)
    return content_key(op.kind, _attributes(op, structure_key), *map(_form, tensors))[:16]


def _attributes(op: Op, key: Callable[[Op], str]) -> str:
    """Return the attributes as text, with the rounding where it is not TFLM's.

    Of operators among the attributes it has the keys, as their texts leave data out.
    """
    if isinstance(op.attributes, TiledAttention):
        return " ".join(map(key, op.attributes.ops))
    return repr(op.attributes) + ("" if op.rounding == TFLM else repr(op.rounding))


def _form(tensor: Tensor | None) -> str:
    if tensor is None:
        return "none"
    scales = 0 if tensor.quantization is None else np.asarray(tensor.quantization.scale).size
    return f"{tensor.shape} {tensor.dtype.name} {scales} {tensor.data is not None}"


def _tensor_parts(tensor: Tensor | None) -> list[str | bytes]:
    if tensor is None:
        return ["none"]
    parts: list[str | bytes] = [str(tensor.shape), tensor.dtype.name]
    if tensor.quantization is not None:
        parts.append(np.asarray(tensor.quantization.scale).tobytes())
        parts.append(np.asarray(tensor.quantization.zero_point).tobytes())
    if tensor.data is not None:
        parts.append(np.ascontiguousarray(tensor.data).tobytes())
    return parts
