"""TopK and Einsum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Mean
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.reductions import axis_of
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.along_axis import TopK
from covp.graph.ops.matmul import BatchMatMul


@register("TopK")
def _top_k(node: OnnxNode, importer: Importer) -> list[Tensor]:
    """Convert TopK; the elements are sorted whether the node asks for it or not."""
    source = node.input(0)
    axis = axis_of(node.get("axis", -1), len(source.shape))
    count = node.optional(1)
    if count is None or count.constant:
        number = node.integers(1, "the number of elements")[0]
    else:
        number = node.stated_shape("the number of elements")[axis]
    last = len(source.shape) - 1
    order = [*(i for i in range(last + 1) if i != axis), axis]
    back = [order.index(i) for i in range(last + 1)]
    found = importer.add_many(
        "TOPK_V2",
        importer.transpose(source, order),
        attributes=TopK(number, bool(node.get("largest", 1))),
        dtypes=[None, np.int64],
    )
    return [importer.transpose(tensor, back) for tensor in found]


@register("Einsum")
def _einsum(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert Einsum: join operands pairwise, summing an axis once no other needs it."""
    text = "".join(str(node.get("equation", "")).split())
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if "." in text or len(terms) != len(node.inputs):
        raise ModelError(f"the equation {text!r:.60} is not supported: name every axis")
    if not arrow:
        letters = left.replace(",", "")
        result = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    parts = [(node.input(i), term) for i, term in enumerate(terms)]
    for tensor, term in parts:
        if len(set(term)) != len(term) or len(term) != len(tensor.shape):
            raise ModelError(f"{term!r:.60} does not name each axis of {tensor.shape} once")
    while len(parts) > 1:
        (x, first), (y, second), *rest = parts
        needed = set(result).union(*(term for _, term in rest))
        parts = [_multiply(importer, x, first, y, second, needed), *rest]
    tensor, term = parts[0]
    tensor, term = _sum_axes(importer, tensor, term, set(result))
    if set(term) != set(result):
        raise ModelError(f"{result!r:.60} has an axis that no operand has")
    return importer.transpose(tensor, [term.index(x) for x in result])


def _sum_axes(importer: Importer, x: Tensor, term: str, needed: set[str]) -> tuple[Tensor, str]:
    axes = tuple(i for i, letter in enumerate(term) if letter not in needed)
    if not axes:
        return x, term
    found = importer.add("SUM", x, attributes=Mean(axes, keep_dims=False))
    return found, "".join(letter for letter in term if letter in needed)


def _multiply(
    importer: Importer, x: Tensor, first: str, y: Tensor, second: str, needed: set[str]
) -> tuple[Tensor, str]:
    """Add a matrix product for each index of the axes that both have and the result keeps."""
    x, first = _sum_axes(importer, x, first, needed | set(second))
    y, second = _sum_axes(importer, y, second, needed | set(first))
    extents = dict(zip(first, x.shape, strict=True))
    for letter, extent in zip(second, y.shape, strict=True):
        if extents.setdefault(letter, extent) != extent:
            raise ModelError(f"axis {letter} has extents {extents[letter]} and {extent}")
    batch = [n for n in first if n in second and n in needed]
    inner = [n for n in first if n in second and n not in needed]
    rows = [n for n in first if n not in second]
    columns = [n for n in second if n not in first]

    def matrices(tensor: Tensor, term: str, *groups: Sequence[str]) -> Tensor:
        order = [term.index(n) for group in (batch, *groups) for n in group]
        shape = [extents[n] for n in batch]
        shape += [int(np.prod([extents[n] for n in group])) for group in groups]
        return importer.reshape(importer.transpose(tensor, order), shape)

    product = importer.add(
        "BATCH_MATMUL",
        matrices(x, first, rows, inner),
        matrices(y, second, inner, columns),
        attributes=BatchMatMul(),
    )
    term = "".join([*batch, *rows, *columns])
    return importer.reshape(product, [extents[n] for n in term]), term
