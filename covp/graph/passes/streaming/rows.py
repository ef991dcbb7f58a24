"""`Rows`: the time of a tensor, and the arithmetic of windows that slide along it.

A network that is run on overlapping windows computes most rows again: with a window that starts
``hop`` input rows later, row i of a tensor is what row i + hop / step was, where step is the
product of the strides before it. So only its last hop / step rows are new.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from covp.graph.graph import Op, Tensor


class Refused(Exception):
    """An operator whose new rows cannot be computed from new rows of its inputs; the reason."""


@dataclass(frozen=True)
class Rows:
    """Rows of a tensor in time.

    Attributes:
        axis: of time.
        extent: rows of a window in the plain network.
        step: input rows from one of its rows to the next.
        new: rows that an inference computes, the last of the window; fewer than ``extent``.
    """

    axis: int
    extent: int
    step: int
    new: int


@dataclass(frozen=True)
class Plan:
    """Computation of an operator from rows.

    Attributes:
        needs: for each input how many of its newest rows are read; 0 for one without time.
        rows: of the outputs; None where each inference computes them as a whole.
        attributes: of the operator on these rows.
    """

    needs: tuple[int, ...]
    rows: Rows | None
    attributes: Any


@dataclass(frozen=True)
class Reach:
    """The rows that a sliding window reads: row j of the output reads from begin + j * stride on.

    Attributes:
        begin: first row.
        length: of the window, dilation included.
        stride: from one window to the next.
    """

    begin: int
    length: int
    stride: int


def slide(op: Op, rows: Rows, reach: Reach, axis: int, hop: int) -> tuple[int, int, Rows | None]:
    """Return the rows that a sliding window needs for the new rows of its output.

    Args:
        op: for messages; its first output is what is computed.
        rows: of what the window slides over.
        reach: of the window.
        axis: of time in the output.
        hop: new rows of the network's input.

    Returns:
        The newest input rows that are needed; how many of these, at the end, are not read by any
        window; and the rows of the output.

    Raises:
        Refused: the hop is no multiple of the strides.
    """
    extent = op.output.shape[axis] if axis >= 0 else 1
    step = rows.step * reach.stride
    new = extent
    if extent > 1:
        if hop % step:
            raise Refused(
                f"{op.name} ({op.kind}) moves by {step} rows of the input, of which {hop} are new; "
                f"take a multiple: --streaming {step}"
            )
        new = min(extent, hop // step)
    unread = rows.extent - (reach.begin + (extent - 1) * reach.stride + reach.length)
    need = unread + (new - 1) * reach.stride + reach.length
    return need, unread, None if new == extent else Rows(axis, extent, step, new)


def with_rows(tensor: Tensor, rows: Rows, count: int) -> Tensor:
    """Return a tensor with ``count`` rows."""
    shape = (*tensor.shape[: rows.axis], count, *tensor.shape[rows.axis + 1 :])
    return replace(tensor, shape=shape)
