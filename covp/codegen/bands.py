"""Bands: a layer over a few rows of its output, as a layer of its own on slices of its tensors.

In NHWC with one image the rows of a tensor lie one after the other, so a slice is a place and a
size, and nothing is copied. A window that is higher than a row reads rows that the bands beside it
read, too; nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from covp.errors import ModelError
from covp.graph.attributes import Padding
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, IndexMap
from covp.graph.ops.definition import OPS, definition


@dataclass(frozen=True, eq=False)
class Band:
    """Some output rows of a layer.

    Attributes:
        op: the layer on slices; bands of the same form have the same one.
        slices: for each tensor of ``op``, by its id: the tensor of the layer that it is a slice
            of, and the byte where it begins there.
    """

    op: Op
    slices: dict[int, tuple[Tensor, int]]


def can_be_cut(op: Op) -> bool:
    """Return whether an operator computes row by row of integer images, one image at a time.

    By its index map: with each row of the output nothing moves but the rows that are read.
    """
    output, rule = op.output, OPS.known(op.kind)
    if rule is None or len(op.outputs) != 1 or len(output.shape) != 4 or output.shape[0] != 1:
        return False
    read = [tensor for tensor in op.inputs if tensor is not None and not tensor.constant]
    if any(
        t.dtype.kind == "f" or t.shape[:1] != (1,) or len(t.shape) != 4 for t in [*read, output]
    ):
        return False
    if output.shape[1] < 2 or 1 in rule.positional(op) or op.kind == "RESHAPE":
        return False  # a RESHAPE is free as it is
    (own,) = rule.reads(op)
    if not read or not _moves_rows_only(op, own):
        return False
    if not isinstance(getattr(op.attributes, "padding", Padding()), Padding):
        return False
    try:  # attributes that tell of rows do not fit fewer of them
        return all(rule.infer_shapes(band.op) == [band.op.output.shape] for band in cut(op, 1))
    except ModelError:
        return False


def _moves_rows_only(op: Op, own: IndexMap) -> bool:
    """Return whether rows of all inputs that are computed move alike, and nothing else does."""
    rows = set()
    for tensor, reads in zip(op.inputs, own.inputs, strict=True):
        computed = tensor is not None and not tensor.constant
        if computed and reads:
            rows.add(reads[1])
        for axis, read in enumerate(reads or ()):
            step = read.step(1)
            if step != 0 and not (computed and axis == 1 and step is not None and step > 0):
                return False
            if not computed and 1 in read.loops():
                return False
    return len(rows) == 1 and all(isinstance(read, Index) and read.step(1) for read in rows)


def cut(op: Op, rows: int) -> list[Band]:
    """Return the bands of a layer that `can_be_cut`, from the top.

    Args:
        rows: of the output, of each but the last.

    Returns:
        Empty where a band would see nothing but padding, or some that no attribute tells of.
    """
    height, (own,) = op.output.shape[1], definition(op.kind).reads(op)
    position = next(n for n, t in enumerate(op.inputs) if t is not None and not t.constant)
    (_, window, *_), source = own.inputs[position] or (), op.input(position)
    assert isinstance(window, Index)
    made: dict[tuple[int, ...], Op] = {}
    found = []
    for first in range(0, height, rows):
        count = min(rows, height - first)
        box = tuple((0, extent) for extent in op.output.shape)
        start, last = window.bounds(own.ranges((box[0], (first, first + count), *box[2:])))
        top, bottom = max(0, -start), max(0, last + 1 - source.shape[1])
        start, end = start + top, last + 1 - bottom
        if end <= start or ((top or bottom) and not hasattr(op.attributes, "padding")):
            return []
        form = (count, end - start, top, bottom)
        if form not in made:
            made[form] = _on_slices(op, *form)
        found.append(_band(op, made[form], first, start))
    return found


def _on_slices(op: Op, rows: int, in_rows: int, top: int, bottom: int) -> Op:
    made: dict[int, Tensor] = {}
    inputs: list[Tensor | None] = []
    for tensor in op.inputs:
        if tensor is None or tensor.constant:
            inputs.append(tensor)
        else:
            inputs.append(made.setdefault(id(tensor), _slice(tensor, in_rows)))
    attributes = op.attributes
    if hasattr(attributes, "padding"):
        padding = replace(attributes.padding, top=top, bottom=bottom)
        attributes = replace(attributes, padding=padding)
    return replace(op, inputs=inputs, outputs=[_slice(op.output, rows)], attributes=attributes)


def _slice(tensor: Tensor, rows: int) -> Tensor:
    return replace(tensor, shape=(1, rows, *tensor.shape[2:]))


def _band(op: Op, on_slices: Op, first: int, start: int) -> Band:
    pairs = zip(on_slices.inputs, op.inputs, strict=True)
    slices = {
        id(part): (whole, start * _row_bytes(whole))
        for part, whole in pairs
        if part is not None and whole is not None and not whole.constant
    }
    slices[id(on_slices.output)] = (op.output, first * _row_bytes(op.output))
    return Band(on_slices, slices)


def _row_bytes(tensor: Tensor) -> int:
    return tensor.nbytes // tensor.shape[1]
