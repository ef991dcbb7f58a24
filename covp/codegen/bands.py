"""Bands: a layer over a few rows of its output, as a layer of its own on slices of its tensors.

In NHWC with one image the rows of a tensor lie one after the other, so a slice is a place and a
size, and nothing is copied. A window that is higher than a row reads rows that the bands beside it
read, too; nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from covp.graph.attributes import Conv2D, DepthwiseConv2D, Pool2D
from covp.graph.graph import Op, Tensor

_WINDOWS = {
    "CONV_2D": Conv2D,
    "DEPTHWISE_CONV_2D": DepthwiseConv2D,
    "AVERAGE_POOL_2D": Pool2D,
    "MAX_POOL_2D": Pool2D,
}
_POINTWISE = frozenset(
    {"ADD", "SUB", "MUL", "QUANTIZE", "RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"}
)


@dataclass(frozen=True)
class _Window:
    """The vertical side of a window: rows, from row to row of the output, and padding above."""

    height: int = 1
    stride: int = 1
    dilation: int = 1
    top: int = 0

    def rows(self, first: int, count: int) -> tuple[int, int]:
        """First and one past the last input row that output rows look at; padding included."""
        start = first * self.stride - self.top
        return start, start + (count - 1) * self.stride + (self.height - 1) * self.dilation + 1


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
    """Whether an operator computes row by row of integer images, one image at a time."""
    output = op.output
    if len(op.outputs) != 1 or len(output.shape) != 4 or output.shape[0] != 1:
        return False
    if output.dtype.kind == "f" or op.input(0).dtype.kind == "f" or output.shape[1] < 2:
        return False
    if op.kind in _POINTWISE:
        return all(
            tensor is None or tensor.shape == output.shape or (tensor.constant and tensor.size == 1)
            for tensor in op.inputs
        )
    return type(op.attributes) is _WINDOWS.get(op.kind) and all(
        tensor is None or tensor.constant for tensor in op.inputs[1:]
    )


def cut(op: Op, rows: int) -> list[Band]:
    """The bands of a layer that `can_be_cut`, from the top.

    Args:
        rows: of the output, of each but the last.

    Returns:
        Empty where a band would see nothing but padding.
    """
    window, height = _window(op), op.output.shape[1]
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


def _window(op: Op) -> _Window:
    if op.kind in _POINTWISE:
        return _Window()
    how: Any = op.attributes
    if isinstance(how, Pool2D):
        return _Window(how.filter[0], how.stride[0], 1, how.padding.top)
    return _Window(op.input(1).shape[1], how.stride[0], how.dilation[0], how.padding.top)


def _on_slices(op: Op, rows: int, in_rows: int, top: int, bottom: int) -> Op:
    made: dict[int, Tensor] = {}
    inputs: list[Tensor | None] = []
    for tensor in op.inputs:
        if tensor is None or tensor.constant:
            inputs.append(tensor)
        else:
            inputs.append(made.setdefault(id(tensor), _slice(tensor, in_rows)))
    attributes = op.attributes
    if op.kind not in _POINTWISE:
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
