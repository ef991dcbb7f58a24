"""UNIDIRECTIONAL_SEQUENCE_LSTM without peepholes, projection and layer normalization.

In the three forms that TFLM has: float32; int8 activations with an int16 cell state; int16
activations. Weights are int8 in these two, whose arithmetic is `covp.graph.ops.quantized_lstm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Reads, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee
from covp.graph.ops.quantized_lstm import QuantizedLstm, run_quantized_lstm

INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = 1, 5, 12
"""Positions of the first of four inputs: of the input, forget, cell and output gate."""
HIDDEN, CELL = 18, 19
"""Positions of the states."""
_LEFT_OUT = {"peepholes": range(9, 12), "a projection": (16, 17), "normalization": range(20, 24)}
_TYPES = {
    "float32": ("float32", "float32", "float32"),
    "int8": ("int8", "int32", "int16"),
    "int16": ("int8", "int64", "int16"),
}


@dataclass(frozen=True)
class SequenceLstm:
    """UNIDIRECTIONAL_SEQUENCE_LSTM.

    Input (batch, steps, features), or (steps, batch, features) where ``time_major``. Inputs are in
    TFLite's order, 24 or 20 of them, with the previous states at `HIDDEN` and `CELL`; outputs are
    the sequence of hidden states and the two states of afterwards.

    Attributes:
        time_major: the order of the first two axes.
        cell_clip: the largest magnitude of the cell state, in real units; 0: any.
    """

    time_major: bool = False
    cell_clip: float = 0.0


def _shapes(op: Op) -> list[Shape]:
    source = op.input(0).shape
    if len(source) != 3:
        raise ModelError(f"its input has shape {source}; three axes are needed")
    cells = op.input(RECURRENT_WEIGHTS).shape[0]
    batch = source[1 if op.attributes.time_major else 0]
    for position in range(4):
        _demand(op, INPUT_WEIGHTS + position, (cells, source[2]))
        _demand(op, RECURRENT_WEIGHTS + position, (cells, cells))
        _demand(op, BIASES + position, (cells,))
    for position in (HIDDEN, CELL):
        if op.input(position).size != batch * cells:
            raise ModelError(
                f"state {op.input(position).name} has shape {op.input(position).shape}; "
                f"{(batch, cells)} is needed"
            )
    return [(*source[:2], cells), op.input(HIDDEN).shape, op.input(CELL).shape]


def _demand(op: Op, position: int, shape: Shape) -> None:
    tensor = op.input(position)
    if tensor.shape != shape:
        raise ModelError(
            f"tensor {tensor.name} has shape {tensor.shape}; {shape} is needed", tensor=tensor.name
        )
    if tensor.data is None:
        raise ModelError(
            f"tensor {tensor.name} must be constant; freeze the model", tensor=tensor.name
        )


def _types(op: Op) -> None:
    if len(op.inputs) <= CELL:
        raise ModelError(f"it has {len(op.inputs)} inputs; {CELL + 1} are needed")
    for what, positions in _LEFT_OUT.items():
        if any(op.inputs[i] is not None for i in positions if i < len(op.inputs)):
            raise ModelError(f"it has {what}, which is not supported; use a Keras LSTM layer")
    kept = (0, *range(INPUT_WEIGHTS, INPUT_WEIGHTS + 8), *range(BIASES, BIASES + 4), HIDDEN, CELL)
    if any(op.inputs[i] is None for i in kept):
        raise ModelError("an input, weight, bias or state is missing (coupled gates?)")
    kind = op.input(0).dtype.name
    check_type(op.input(0), *_TYPES)
    weights, bias, cell = _TYPES[kind]
    for position in range(4):
        check_type(op.input(INPUT_WEIGHTS + position), weights)
        check_type(op.input(RECURRENT_WEIGHTS + position), weights)
        check_type(op.input(BIASES + position), bias)
    for tensor in (op.input(HIDDEN), *op.outputs[:2]):
        check_type(tensor, kind)
    for tensor in (op.input(CELL), *op.outputs[2:]):
        check_type(tensor, cell)
    if kind != "float32":
        QuantizedLstm.of(op)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    if given(values, 0).dtype != np.float32:
        states = given(values, HIDDEN), given(values, CELL)
        return run_quantized_lstm(QuantizedLstm.of(op), given(values, 0), *states)
    with ieee():
        return _float(op, values)


def _float(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Return the gates in the order input, forget, cell, output: CalculateLstmGateFloat."""
    a = op.attributes
    x = given(values, 0) if a.time_major else given(values, 0).swapaxes(0, 1)
    shapes = given(values, HIDDEN).shape, given(values, CELL).shape
    hidden = given(values, HIDDEN).reshape(x.shape[1], -1)
    cell = given(values, CELL).reshape(hidden.shape)
    gates = [
        tuple(given(values, first + gate) for first in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES))
        for gate in range(4)
    ]
    results = []
    for row in x:
        sums = [row @ w.T + hidden @ r.T + b for w, r, b in gates]
        i, f, o = (1 / (1 + np.exp(-sums[gate])) for gate in (0, 1, 3))
        cell = f * cell + i * np.tanh(sums[2])
        if a.cell_clip > 0:
            cell = np.clip(cell, -a.cell_clip, a.cell_clip)
        hidden = (o * np.tanh(cell)).astype(np.float32)
        results.append(hidden)
    sequence = np.stack(results, axis=0 if a.time_major else 1)
    return [sequence, hidden.reshape(shapes[0]), cell.astype(np.float32).reshape(shapes[1])]


def _macs(op: Op) -> int:
    batch, steps, depth = op.input(0).shape
    cells = op.input(RECURRENT_WEIGHTS).shape[0]
    return batch * steps * 4 * cells * (depth + cells)


def _reads(op: Op) -> list[IndexMap]:
    a, maps = op.attributes, []
    time, batch = (0, 1) if a.time_major else (1, 0)
    for number, output in enumerate(op.outputs):
        space = Space(op, number)
        place = list(space.loops(op.input(0).shape, "scan"))
        states: list[Reads | None] = list(space.whole(HIDDEN, CELL))
        of_sequences = len(output.shape) == (2 if number else 3)
        if of_sequences:
            place[batch] = space.axes[0 if number else batch]
            for i, position in enumerate((HIDDEN, CELL)):
                if len(op.input(position).shape) == 2:
                    states[i] = place[batch], space.loop(op.input(position).shape[1])
        if not number:
            place[time] = space.axes[time] - place[time]
        middle = space.whole(*range(1, HIDDEN))
        maps.append(space.make_map(tuple(place), *middle, *states))
    return maps


OPS["UNIDIRECTIONAL_SEQUENCE_LSTM"] = OpDefinition(_shapes, _reference, _macs, _types, reads=_reads)
