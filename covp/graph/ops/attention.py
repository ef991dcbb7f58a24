"""ATTENTION: scaled dot product attention, with masks, windows and grouped heads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, IndexMap, Reads, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee

MASK, LENGTHS = 3, 4
"""Positions of the optional inputs: a mask, and the number of keys that count in each batch."""


@dataclass(frozen=True)
class Attention:
    """Attributes of ATTENTION, named as those of ONNX's Attention (opset 25).

    Queries, keys and values are (batch, heads, sequence, size) or (batch, sequence, heads * size).

    Attributes:
        heads, kv_heads: of queries, and of keys and values; several heads of the former share one
            of the latter.
        scale: of the products of queries and keys.
        offset: the position of the first query among the keys; `LENGTHS` minus the number of
            queries where those are given.
        causal: a query sees no key after its own position.
        left, right: how far before and after its own position a query sees; -1: all.
        softcap: scores become softcap * tanh(score / softcap); 0: as they are.
        scores: what the second output holds: 0 the scaled products, 1 after softcap, 2 after the
            mask, 3 the weights; None: there is no second output.
    """

    heads: int
    kv_heads: int
    scale: float
    offset: int = 0
    causal: bool = False
    left: int = -1
    right: int = -1
    softcap: float = 0.0
    scores: int | None = None


@dataclass(frozen=True)
class Extents:
    """Numbers of an ATTENTION: batches, queries, keys, and elements of a query and of a value."""

    batch: int
    queries: int
    keys: int
    size: int
    value_size: int

    @staticmethod
    def of(op: Op) -> Extents:
        """Return the extents. Raises ModelError: the inputs' shapes do not fit each other."""
        a: Attention = op.attributes
        q, k, v = (
            _split(op.input(position), heads)
            for position, heads in enumerate((a.heads, a.kv_heads, a.kv_heads))
        )
        fits = q[0] == k[0] == v[0] and k[2] == v[2] and q[3] == k[3]
        if not fits or not a.kv_heads or a.heads % a.kv_heads:
            shapes = ", ".join(str(op.input(i).shape) for i in range(3))
            raise ModelError(
                f"shapes {shapes} with {a.heads} and {a.kv_heads} heads do not fit an attention"
            )
        return Extents(q[0], q[2], k[2], q[3], v[3])


def optional(op: Op, position: int) -> Tensor | None:
    """Return an input that may be left out."""
    return op.inputs[position] if position < len(op.inputs) else None


def _split(tensor: Tensor, heads: int) -> Shape:
    """Return the shape as (batch, heads, sequence, size)."""
    shape = tensor.shape
    if len(shape) == 4 and shape[1] == heads:
        return shape
    if len(shape) == 3 and heads and shape[2] % heads == 0:
        return (shape[0], heads, shape[1], shape[2] // heads)
    raise ModelError(
        f"tensor {tensor.name} of shape {shape} does not have {heads} heads", tensor=tensor.name
    )


def _shapes(op: Op) -> list[Shape]:
    a: Attention = op.attributes
    n = Extents.of(op)
    all_scores = (n.batch, a.heads, n.queries, n.keys)
    mask, lengths = optional(op, MASK), optional(op, LENGTHS)
    if mask is not None:
        wanted = (*all_scores[:3], mask.shape[-1] if mask.shape else 0)
        try:
            fits = mask.shape and np.broadcast_shapes(mask.shape, wanted) == wanted
        except ValueError:
            fits = False
        if not fits or wanted[3] > n.keys:
            raise ModelError(f"a mask of shape {mask.shape} does not fit scores of {all_scores}")
    if lengths is not None and lengths.shape != (n.batch,):
        raise ModelError(f"numbers of keys of shape {lengths.shape}, not ({n.batch},)")
    packed = len(op.input(0).shape) == 3
    result = (
        (n.batch, n.queries, a.heads * n.value_size) if packed else (*all_scores[:3], n.value_size)
    )
    return [result] if a.scores is None else [result, all_scores]


def _types(op: Op) -> None:
    for tensor in (*op.inputs[:3], *op.outputs):
        if tensor is not None:
            check_type(tensor, "float32")
    mask, lengths = optional(op, MASK), optional(op, LENGTHS)
    if mask is not None:
        check_type(mask, "float32", "bool")
    if lengths is not None:
        check_type(lengths, "int64", "int32")


def _split_heads(value: Array, heads: int) -> Array:
    if value.ndim == 4:
        return value
    split = value.reshape(*value.shape[:2], heads, value.shape[2] // heads)
    return np.swapaxes(split, 1, 2)


def _bias(op: Op, values: Sequence[Array | None]) -> Array:
    """Return the addend of the scores: the mask, and -infinity where a query sees no key."""
    a: Attention = op.attributes
    n = Extents.of(op)
    bias = np.zeros((n.batch, a.heads, n.queries, n.keys), np.float32)
    mask = values[MASK] if len(values) > MASK else None
    if mask is not None:
        added = np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask
        missing = n.keys - mask.shape[-1]
        bias += np.pad(
            added, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf
        ).astype(np.float32)
    lengths = values[LENGTHS] if len(values) > LENGTHS else None
    first = np.full(n.batch, a.offset) if lengths is None else lengths - n.queries
    key = np.arange(n.keys)
    position = first[:, None, None, None] + np.arange(n.queries)[:, None]
    seen = np.ones((n.batch, 1, n.queries, n.keys), np.bool_)
    if lengths is not None:
        seen &= key < lengths[:, None, None, None]
    if a.causal:
        seen &= key <= position
    if a.left >= 0:
        seen &= key >= position - a.left
    if a.right >= 0:
        seen &= key <= position + a.right
    return np.where(seen, bias, np.float32(-np.inf))


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a: Attention = op.attributes
    q = _split_heads(given(values, 0), a.heads)
    k, v = (
        np.repeat(_split_heads(given(values, i), a.kv_heads), a.heads // a.kv_heads, axis=1)
        for i in (1, 2)
    )
    with ieee():
        raw = np.matmul(q, np.swapaxes(k, 2, 3)) * np.float32(a.scale)
        capped = raw
        if a.softcap:
            capped = np.tanh(raw / np.float32(a.softcap)) * np.float32(a.softcap)
        bias = _bias(op, values)
        hidden = np.isneginf(bias)
        biased = np.where(hidden, -np.inf, capped + bias).astype(np.float32)
        most = biased.max(axis=-1, keepdims=True, initial=-np.inf)
        powers = np.where(hidden, 0, np.exp(biased - np.where(np.isneginf(most), 0, most)))
        total = powers.sum(axis=-1, keepdims=True)
        weights = (powers / np.where(total == 0, 1, total)).astype(np.float32)
        result = np.matmul(weights, v)
    if len(op.input(0).shape) == 3:
        result = np.swapaxes(result, 1, 2).reshape(op.output.shape)
    outputs = [np.ascontiguousarray(result, np.float32)]
    if a.scores is not None:
        outputs.append((raw, capped, biased, weights)[a.scores])
    return outputs


def head_index(tensor: Tensor, heads: int, *place: Index) -> Reads:
    """Return the index of (batch, head, sequence, element); heads may be packed in the tensor."""
    batch, head, at, element = place
    if len(tensor.shape) == 4:
        return (batch, head, at, element)
    return (batch, at, head * (tensor.shape[2] // heads) + element)


def _visible_keys(op: Op, space: Space, query: Index) -> Index:
    """Return the keys that a query sees."""
    a: Attention = op.attributes
    n = Extents.of(op)
    right = 0 if a.causal else a.right
    if optional(op, LENGTHS) is not None or max(a.left, right) < 0:
        return space.loop(n.keys)
    before = a.left if a.left >= 0 else n.queries + a.offset
    after = right if right >= 0 else n.keys
    return query + space.loop(max(before + after + 1, 0)) + (a.offset - before)


def _reads(op: Op) -> list[IndexMap]:
    a: Attention = op.attributes
    n = Extents.of(op)
    share = a.heads // a.kv_heads
    maps = []
    for number in range(len(op.outputs)):
        space = Space(op, number)
        if len(space.axes) == 4:
            batch, head, query, last = space.axes
        else:
            batch, query, packed = space.axes
            head, last = packed // n.value_size, packed % n.value_size
        own_key = number == 1 and a.scores != 3
        key = last if own_key else _visible_keys(op, space, query)
        element = space.loop(n.size)
        shared = head // share
        reads: list[Reads | None] = [
            head_index(op.input(0), a.heads, batch, head, query, element),
            head_index(op.input(1), a.kv_heads, batch, shared, key, element),
            head_index(op.input(2), a.kv_heads, batch, shared, key, last) if number == 0 else None,
        ]
        if number == 0 or a.scores in (2, 3):
            reads += [
                space.broadcast(MASK, (batch, head, query, key)),
                space.broadcast(LENGTHS, (batch,)),
            ]
        maps.append(space.make_map(*reads))
    return maps


def _positional(op: Op) -> tuple[int, ...]:
    """Return the axes whose positions a mask depends on; lengths shift it, unknown to the map."""
    a: Attention = op.attributes
    if a.scores in (2, 3):
        return 2, 3
    is_masked = a.causal or max(a.left, a.right) >= 0
    return (len(op.output.shape) - 2,) if is_masked and optional(op, LENGTHS) is not None else ()


def _macs(op: Op) -> int:
    n = Extents.of(op)
    heads: int = op.attributes.heads
    return heads * n.batch * n.queries * n.keys * (n.size + n.value_size)


def default_scale(size: int) -> float:
    """Return the default scale for queries of ``size`` elements."""
    return 1 / math.sqrt(size)


OPS["ATTENTION"] = OpDefinition(
    _shapes,
    _reference,
    _macs,
    _types,
    lambda op: {LENGTHS: (1, Extents.of(op).keys)},
    _reads,
    _positional,
)
