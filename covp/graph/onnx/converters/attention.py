"""Attention and RotaryEmbedding."""

from __future__ import annotations

from collections.abc import Sequence

from covp.errors import ModelError
from covp.graph.attributes import Concatenation
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.attention import Attention, default_scale
from covp.graph.ops.rotary_embedding import RotaryEmbedding

_MASK, _PAST, _LENGTHS = 3, (4, 5), 6  # inputs
_PRESENT, _SCORES = (1, 2), 3  # outputs


@register("Attention")
def _attention(node: OnnxNode, importer: Importer) -> Sequence[Tensor | None]:
    """Convert Attention; keys and values of earlier calls are put before the new ones."""
    query, key, value = (node.input(i) for i in range(3))
    heads = _heads(node, query, "q_num_heads")
    kv_heads = _heads(node, key, "kv_num_heads")
    past = [node.optional(i) for i in _PAST]
    offset = 0
    present: list[Tensor | None] = [None, None]
    if any(t is not None for t in past) or any(node.wants(i) for i in _PRESENT):
        key, value = (_split_heads(importer, t, kv_heads) for t in (key, value))
        if past[0] is not None and past[1] is not None:
            offset = past[0].shape[2] if len(past[0].shape) == 4 else 0
            join = Concatenation(axis=2)
            key = importer.add("CONCATENATION", past[0], key, attributes=join)
            value = importer.add("CONCATENATION", past[1], value, attributes=join)
        present = [key, value]
    size = query.shape[-1] // (1 if len(query.shape) == 4 else heads)
    wants_scores = node.wants(_SCORES)
    attributes = Attention(
        heads,
        kv_heads,
        node.get("scale", default_scale(size)),
        offset,
        bool(node.get("is_causal", 0)),
        node.get("left_window_size", -1),
        node.get("right_window_size", -1),
        node.get("softcap", 0.0),
        _scores(node) if wants_scores else None,
    )
    made = importer.add_many(
        "ATTENTION",
        query,
        key,
        value,
        node.optional(_MASK),
        node.optional(_LENGTHS),
        attributes=attributes,
        dtypes=[None] * (1 + wants_scores),
    )
    return [made[0], *present, made[1] if wants_scores else None]


def _scores(node: OnnxNode) -> int:
    """Return which scores are the fourth output. Raises ModelError: the mode is unknown."""
    mode = int(node.get("qk_matmul_output_mode", 0))
    if not 0 <= mode <= 3:
        raise ModelError(f"qk_matmul_output_mode is {mode}; 0 to 3 are known")
    return mode


def _heads(node: OnnxNode, tensor: Tensor, attribute: str) -> int:
    if len(tensor.shape) == 4:
        return tensor.shape[1]
    if len(tensor.shape) != 3:
        raise ModelError(
            f"tensor {tensor.name} of shape {tensor.shape} has neither 3 nor 4 axes",
            tensor=tensor.name,
        )
    count = int(node.get(attribute, 0))
    if count < 1 or tensor.shape[2] % count:
        raise ModelError(f"{attribute}={count} does not divide {tensor.name} of {tensor.shape}")
    return count


def _split_heads(importer: Importer, tensor: Tensor, heads: int) -> Tensor:
    """Reshape a tensor to (batch, heads, sequence, size)."""
    if len(tensor.shape) == 4:
        return tensor
    batch, sequence, hidden = tensor.shape
    split = importer.reshape(tensor, (batch, sequence, heads, hidden // heads))
    return importer.transpose(split, (0, 2, 1, 3))


@register("RotaryEmbedding")
def _rotary_embedding(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    heads = _heads(node, source, "num_heads")
    size = source.shape[-1] // (1 if len(source.shape) == 4 else heads)
    turned = node.get("rotary_embedding_dim", 0) or size
    attributes = RotaryEmbedding(heads, turned, bool(node.get("interleaved", 0)))
    inputs = [node.input(i) for i in range(3)]
    return importer.add("ROTARY_EMBEDDING", *inputs, node.optional(3), attributes=attributes)
