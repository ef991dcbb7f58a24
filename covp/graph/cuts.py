"""Cuts: an operator over some rows of its output, as an operator of its own.

In NHWC with one image the rows of a tensor lie one after the other, so rows are a place and a size.
Which operators can be cut, and which rows of their inputs some rows need, follows from index maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from covp.errors import ModelError
from covp.graph.attributes import Padding
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, Read
from covp.graph.ops.definition import OPS, definition

_ROWS = 1
"""The axis of rows in NHWC."""


@dataclass(frozen=True)
class RowWindow:
    """The rows of the inputs that a row of the output is computed from.

    Attributes:
        stride: from row to row of the output.
        first, last: those of row 0; negative ones are padding.
    """

    stride: int = 1
    first: int = 0
    last: int = 0

    def rows(self, first: int, count: int) -> tuple[int, int]:
        """Return the first and one past the last input row of some rows, padding included."""
        start = first * self.stride
        return start + self.first, start + (count - 1) * self.stride + self.last + 1


def can_be_cut(op: Op) -> bool:
    """Return whether an operator computes row by row of integer images, one image at a time.

    With each row of the output nothing may move but the rows that are read, in all inputs alike.
    """
    rule, images = OPS.known(op.kind), [*_computed(op), *op.outputs]
    if rule is None or len(op.outputs) != 1 or len(images) < 2 or op.kind == "RESHAPE":
        return False  # a RESHAPE costs nothing as it is
    if any(t.dtype.kind == "f" or len(t.shape) != 4 or t.shape[0] != 1 for t in images):
        return False
    if op.output.shape[_ROWS] < 2 or _ROWS in rule.positional(op):
        return False
    if not isinstance(getattr(op.attributes, "padding", Padding()), Padding):
        return False
    return _read_of_rows(op) is not None and _has_rows(op)


def _computed(op: Op) -> list[Tensor]:
    return [tensor for tensor in op.inputs if tensor is not None and not tensor.constant]


def _read_of_rows(op: Op) -> Index | None:
    """Return the rows that are read in all inputs that are no constants; None: not alike."""
    (own,) = definition(op.kind).reads(op)
    found: set[Read] = set()
    for tensor, reads in zip(op.inputs, own.inputs, strict=True):
        moving = {axis for axis, read in enumerate(reads or ()) if _ROWS in read.loops()}
        is_computed = tensor is not None and not tensor.constant
        if moving - ({_ROWS} if is_computed else set()):
            return None
        if is_computed and reads:
            found.add(reads[_ROWS])
    read = found.pop() if len(found) == 1 else None
    return read if isinstance(read, Index) and (read.step(_ROWS) or 0) > 0 else None


def _has_rows(op: Op) -> bool:
    """Return whether the attributes hold for each row alone: some state the number of rows."""
    rule, window, height = definition(op.kind), window_of(op), _computed(op)[0].shape[_ROWS]
    for row in {0, op.output.shape[_ROWS] // 2, op.output.shape[_ROWS] - 1}:
        start, end = window.rows(row, 1)
        top, bottom = max(0, -start), max(0, end - height)
        if (top or bottom) and not hasattr(op.attributes, "padding"):
            return False
        if end - bottom <= start + top:
            continue  # it sees nothing but padding
        parts = [t if t is None or t.constant else _rows(t, end - start - top - bottom)
                 for t in op.inputs]  # fmt: skip
        alone = on_rows(op, parts, _rows(op.output, 1), top, bottom)
        try:
            if rule.infer_shapes(alone) != [alone.output.shape]:
                return False
        except ModelError:
            return False
    return True


def _rows(tensor: Tensor, count: int) -> Tensor:
    return replace(tensor, shape=(tensor.shape[0], count, *tensor.shape[2:]))


def window_of(op: Op) -> RowWindow:
    """Return the window of an operator that `can_be_cut`."""
    read = _read_of_rows(op)
    assert read is not None
    (own,) = definition(op.kind).reads(op)
    one_row = tuple((0, 1 if axis == _ROWS else n) for axis, n in enumerate(op.output.shape))
    return RowWindow(read.step(_ROWS) or 0, *read.bounds(own.ranges(one_row)))


def on_rows(op: Op, inputs: Sequence[Tensor | None], output: Tensor, top: int, bottom: int) -> Op:
    """Return the operator on some rows.

    Args:
        op: that `can_be_cut`.
        inputs: the rows that it reads, and its constants.
        output: the rows that it computes.
        top, bottom: rows of padding that they touch.
    """
    attributes = op.attributes
    if hasattr(attributes, "padding"):
        padding = replace(attributes.padding, top=top, bottom=bottom)
        attributes = replace(attributes, padding=padding)
    return replace(op, inputs=list(inputs), outputs=[output], attributes=attributes)


def row_bytes(tensor: Tensor) -> int:
    """Return the bytes of a row."""
    return tensor.nbytes // tensor.shape[_ROWS]
