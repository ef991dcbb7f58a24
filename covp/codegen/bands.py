"""Bands: a layer over a few rows of its output, as a layer of its own on slices of its tensors.

Nothing is copied: a slice is a place and a size. A window that is higher than a row reads rows that
the bands beside it read, too; nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from covp.graph.cuts import can_be_cut, on_rows, row_bytes, window_of
from covp.graph.graph import Op, Tensor

__all__ = ["Band", "can_be_cut", "cut"]


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


def cut(op: Op, rows: int) -> list[Band]:
    """Cut a layer that `can_be_cut` into bands, from the top.

    Args:
        rows: of the output, of each but the last.

    Returns:
        Empty where a band would see nothing but padding.
    """
    window, height = window_of(op), op.output.shape[1]
    made: dict[tuple[int, ...], Op] = {}
    found = []
    for first in range(0, height, rows):
        count = min(rows, height - first)
        start, end = window.rows(first, count)
        top, bottom = max(0, -start), max(0, end - op.input(0).shape[1])
        start, end = start + top, end - bottom
        if end <= start:
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
    return on_rows(op, inputs, _slice(op.output, rows), top, bottom)


def _slice(tensor: Tensor, rows: int) -> Tensor:
    return replace(tensor, shape=(1, rows, *tensor.shape[2:]))


def _band(op: Op, on_slices: Op, first: int, start: int) -> Band:
    pairs = zip(on_slices.inputs, op.inputs, strict=True)
    slices = {
        id(part): (whole, start * row_bytes(whole))
        for part, whole in pairs
        if part is not None and whole is not None and not whole.constant
    }
    slices[id(on_slices.output)] = (op.output, first * row_bytes(op.output))
    return Band(on_slices, slices)
