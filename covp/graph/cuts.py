"""Cuts: an operator over some rows of its output, as an operator of its own.

In NHWC with one image the rows of a tensor lie one after the other, so rows are a place and a size.
"""

from __future__ import annotations

from collections.abc import Sequence
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
class RowWindow:
    """The vertical side of a window: rows, from row to row of the output, and padding above."""

    height: int = 1
    stride: int = 1
    dilation: int = 1
    top: int = 0

    def rows(self, first: int, count: int) -> tuple[int, int]:
        """First and one past the last input row that output rows look at; padding included."""
        start = first * self.stride - self.top
        return start, start + (count - 1) * self.stride + (self.height - 1) * self.dilation + 1


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


def window_of(op: Op) -> RowWindow:
    """Return the window of an operator that `can_be_cut`."""
    if op.kind in _POINTWISE:
        return RowWindow()
    how: Any = op.attributes
    if isinstance(how, Pool2D):
        return RowWindow(how.filter[0], how.stride[0], 1, how.padding.top)
    return RowWindow(op.input(1).shape[1], how.stride[0], how.dilation[0], how.padding.top)


def on_rows(op: Op, inputs: Sequence[Tensor | None], output: Tensor, top: int, bottom: int) -> Op:
    """Return the operator on some rows.

    Args:
        op: that `can_be_cut`.
        inputs: the rows that it reads, and its constants.
        output: the rows that it computes.
        top, bottom: rows of padding that they touch.
    """
    attributes = op.attributes
    if op.kind not in _POINTWISE:
        padding = replace(attributes.padding, top=top, bottom=bottom)
        attributes = replace(attributes, padding=padding)
    return replace(op, inputs=list(inputs), outputs=[output], attributes=attributes)


def row_bytes(tensor: Tensor) -> int:
    """Return the bytes of a row."""
    return tensor.nbytes // tensor.shape[1]
