"""Two matrix products with a softmax between them become one operator without the matrix between.

    TRANSPOSE? -> BATCH_MATMUL -> MUL by a constant? -> SOFTMAX -> BATCH_MATMUL -> TRANSPOSE?

The matrix of scores, heads x tokens x tokens, is what limits attention on a small memory.
"""

from __future__ import annotations

import numpy as np

from covp.graph.arithmetic import is_tflm
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.tiled_attention import TiledAttention

_MOST_PRODUCTS = 1 << 15  # sums of more may leave int32


def fuse_attention(graph: Graph) -> None:
    """Fuse int8 attention whose inner tensors have no other reader."""
    for softmax in [op for op in graph.ops if op.kind == "SOFTMAX"]:
        parts = _parts(graph, softmax)
        if parts is not None:
            _replace(graph, parts)


def expand_attention(graph: Graph) -> None:
    """Undo `fuse_attention`, for targets that take the matrix products separately."""
    for op in [op for op in graph.ops if op.kind == "ATTENTION_TILED"]:
        at = graph.ops.index(op)
        graph.ops[at : at + 1] = op.attributes.ops


def _parts(graph: Graph, softmax: Op) -> list[Op] | None:
    """Return the operators around a SOFTMAX to fuse, in order; None where it is not attention."""
    before = _sole_producer(graph, softmax.input(0))
    scale = before if before is not None and _is_scale(before) else None
    scores = _sole_producer(graph, scale.input(0)) if scale is not None else before
    mix = _sole_reader(graph, softmax.output)
    if scores is None or mix is None or not _fits(scores, softmax, mix):
        return None
    middle = [scores, *([scale] if scale is not None else []), softmax, mix]
    sources = [scores.input(0), scores.input(1), mix.input(1)]
    if any(t.data is not None for t in sources):
        return None
    transposes = [_transpose_before(graph, tensor) for tensor in sources]
    after = _sole_reader(graph, mix.output)
    last = [after] if after is not None and after.kind == "TRANSPOSE" else []
    return [*dict.fromkeys(op for op in transposes if op is not None), *middle, *last]


def _fits(scores: Op, softmax: Op, mix: Op) -> bool:
    """Return whether these are int8 attention: weights on the left of the second product."""
    return (
        scores.kind == mix.kind == "BATCH_MATMUL"
        and mix.input(0) is softmax.output
        and not mix.attributes.adj_x
        and all(t.dtype == np.int8 for t in (*scores.inputs, *mix.inputs, mix.output) if t)
        and scores.output.shape == softmax.output.shape
        and mix.output.shape[:-2] == scores.output.shape[:-2]
        and scores.output.quantization is not None
        and max(scores.input(0).shape[-1], mix.input(0).shape[-1]) < _MOST_PRODUCTS
        and all(map(is_tflm, (scores, softmax, mix)))
    )


def _is_scale(op: Op) -> bool:
    """Return whether it multiplies by one constant number: a function of each byte."""
    factor = op.inputs[1] if op.kind == "MUL" else None
    return factor is not None and factor.data is not None and factor.size == 1


def _sole_producer(graph: Graph, tensor: Tensor) -> Op | None:
    alone = len(graph.consumers(tensor)) == 1 and not _is_output(graph, tensor)
    return graph.producer(tensor) if alone else None


def _sole_reader(graph: Graph, tensor: Tensor) -> Op | None:
    readers = graph.consumers(tensor)
    return readers[0] if len(readers) == 1 and not _is_output(graph, tensor) else None


def _transpose_before(graph: Graph, tensor: Tensor) -> Op | None:
    """Return the TRANSPOSE that makes an operand; reading with its strides does the same."""
    producer = graph.producer(tensor)
    return producer if producer is not None and producer.kind == "TRANSPOSE" else None


def _is_output(graph: Graph, tensor: Tensor) -> bool:
    return graph.is_result(tensor)


def _replace(graph: Graph, parts: list[Op]) -> None:
    attributes = TiledAttention(tuple(parts))
    made = {id(op.output): op for op in parts if op.kind == "TRANSPOSE"}
    sources = (
        attributes.scores.input(0), attributes.scores.input(1), attributes.mix.input(1)
    )  # fmt: skip
    inputs: list[Tensor | None] = [made[id(t)].input(0) if id(t) in made else t for t in sources]
    mix = attributes.mix
    fused = Op(
        "ATTENTION_TILED", f"{mix.name}_tiled", inputs, [parts[-1].output], attributes, mix.index
    )
    graph.ops[graph.ops.index(parts[-1])] = fused
    for op in parts[:-1]:
        # a TRANSPOSE that others read too stays beside its copy inside
        others = [r for r in graph.consumers(op.output) if r not in parts]
        if op in graph.ops and not others and not _is_output(graph, op.output):
            graph.ops.remove(op)
