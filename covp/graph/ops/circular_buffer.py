"""CIRCULAR_BUFFER: the newest rows of a stream, along an axis.

TFLite Micro has it as a custom operator (tensorflow/lite/micro/kernels/circular_buffer.cc), whose
rows are those of axis 1 and whose buffer is a variable inside of the operator. Here the buffer is
input 0, a state mostly, and the output is what it becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, of_one_type


@dataclass(frozen=True)
class CircularBuffer:
    """CIRCULAR_BUFFER: inputs are the buffer and new rows; the output is the buffer without its
    oldest rows, the new ones after the others.

    Attributes:
        axis: along which rows lie in the order of time (not negative).
    """

    axis: int


def _shape(op: Op) -> list[Shape]:
    axis, buffer, new = op.attributes.axis, op.input(0).shape, op.input(1).shape
    rest = [shape[:axis] + shape[axis + 1 :] for shape in (buffer, new)]
    if not axis < len(buffer) == len(new) or rest[0] != rest[1] or new[axis] > buffer[axis]:
        raise ModelError(f"rows of {new} do not fit a buffer of {buffer} along axis {axis}")
    return [buffer]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    axis, new = op.attributes.axis, given(values, 1)
    kept = np.take(given(values, 0), range(new.shape[axis], op.output.shape[axis]), axis)
    return [np.concatenate([kept, new], axis)]


def _reads(op: Op) -> list[IndexMap]:
    axis, new = op.attributes.axis, op.input(1).shape[op.attributes.axis]
    space = Space(op)
    before, now = list(space.axes), list(space.axes)
    before[axis] += new
    now[axis] -= op.output.shape[axis] - new
    return [space.make_map(tuple(before), tuple(now))]


OPS["CIRCULAR_BUFFER"] = OpDefinition(
    _shape,
    _reference,
    types=of_one_type("int8", "uint8", "int16", "int32", "float32", data=(0, 1)),
    reads=_reads,
)
