"""RNN, GRU and LSTM as ONNX defines them (operators 22: RNN, GRU, LSTM).

Inputs: X, W (directions, gates * hidden, input), R (directions, gates * hidden, hidden), then,
each None if left out, B (directions, 2 * gates * hidden), sequence_lens int32 (batch),
initial_h (directions, batch, hidden), and for LSTM initial_c and P (directions, 3 * hidden).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Reads, Space
from covp.graph.ops.definition import (
    OPS,
    Array,
    OpDefinition,
    Shape,
    TypeRule,
    check_type,
    given,
    ieee,
)

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
"""Blocks of rows of W and R: GRU z, r, h; LSTM i, o, f, c."""
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
"""Activations of a direction: f, g, h."""
BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = 3, 4, 5, 6, 7
"""Positions of the optional inputs."""


@dataclass(frozen=True)
class Activation:
    """A function of ONNX's list: "sigmoid", "tanh", "relu", "affine", "leakyrelu",
    "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu", "softsign" or "softplus"."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True)
class Recurrent:
    """RNN, GRU, LSTM.

    Attributes:
        hidden: size of the state.
        activations: for each direction f, g and h, as many as `FUNCTIONS` says.
        direction: "bidirectional" runs forward, then backward.
        layout: 0: X (time, batch, input), Y (time, directions, batch, hidden), states (directions,
            batch, hidden). 1: batch first, Y (batch, time, directions, hidden).
        clip: bounds the sums before f and g on both sides; None: it does not.
        outputs: those that exist, of "Y", "Y_h", "Y_c", in this order.
        linear_before_reset: of GRU: the reset gate multiplies after R, not before.
        input_forget: of LSTM: the forget gate is 1 - the input gate.
    """

    hidden: int
    activations: tuple[tuple[Activation, ...], ...]
    direction: Literal["forward", "reverse", "bidirectional"] = "forward"
    layout: Literal[0, 1] = 0
    clip: float | None = None
    outputs: tuple[str, ...] = ("Y", "Y_h")
    linear_before_reset: bool = False
    input_forget: bool = False

    @property
    def backward(self) -> tuple[bool, ...]:
        """For each direction, True if it runs from the end of the sequence."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[
            self.direction
        ]


def extents(op: Op) -> tuple[int, int, int]:
    """Return the steps of time, sequences and input size of X."""
    first, second, size = op.input(0).shape
    return (second, first, size) if op.attributes.layout else (first, second, size)


def output_shapes(op: Op) -> dict[str, Shape]:
    """Return the shapes of Y, Y_h and Y_c."""
    a: Recurrent = op.attributes
    time, batch, _ = extents(op)
    directions = len(a.backward)
    if a.layout:
        whole, state = (batch, time, directions, a.hidden), (batch, directions, a.hidden)
    else:
        whole, state = (time, directions, batch, a.hidden), (directions, batch, a.hidden)
    return {"Y": whole, "Y_h": state, "Y_c": state}


def _shapes(op: Op) -> list[Shape]:
    a: Recurrent = op.attributes
    if len(op.input(0).shape) != 3:
        raise ModelError(f"X has shape {op.input(0).shape}; three axes are needed")
    _, batch, size = extents(op)
    directions, rows = len(a.backward), GATES[op.kind] * a.hidden
    results = output_shapes(op)
    expected: dict[int, tuple[str, Shape]] = {
        1: ("W", (directions, rows, size)),
        2: ("R", (directions, rows, a.hidden)),
        BIAS: ("B", (directions, 2 * rows)),
        LENGTHS: ("sequence_lens", (batch,)),
        INITIAL_H: ("initial_h", results["Y_h"]),
        INITIAL_C: ("initial_c", results["Y_c"]),
        PEEPHOLES: ("P", (directions, 3 * a.hidden)),
    }
    for position, tensor in enumerate(op.inputs[1:], start=1):
        name, shape = expected[position]
        if tensor is not None and tensor.shape != shape:
            raise ModelError(f"{name} has shape {tensor.shape}, which should be {shape}")
    return [results[name] for name in a.outputs]


def _types() -> TypeRule:
    def rule(op: Op) -> None:
        for position, tensor in enumerate(op.inputs):
            if tensor is not None:
                check_type(tensor, "int32" if position == LENGTHS else "float32")

    return rule


def _macs(op: Op) -> int:
    time, batch, size = extents(op)
    a: Recurrent = op.attributes
    rows = GATES[op.kind] * a.hidden * len(a.backward)
    return time * batch * rows * (size + a.hidden)


def _apply(function: Activation, x: Array) -> Array:
    """Return the formulas of ONNX's activation_alpha, in double."""
    a, b = function.alpha, function.beta
    results: dict[str, Callable[[], Array]] = {
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "tanh": lambda: np.tanh(x),
        "relu": lambda: np.maximum(x, 0),
        "affine": lambda: a * x + b,
        "leakyrelu": lambda: np.where(x >= 0, x, a * x),
        "thresholdedrelu": lambda: np.where(x > a, x, 0.0),
        "scaledtanh": lambda: a * np.tanh(b * x),
        "hardsigmoid": lambda: np.clip(a * x + b, 0, 1),
        "elu": lambda: np.where(x >= 0, x, a * (np.exp(np.minimum(x, 0)) - 1)),
        "softsign": lambda: x / (1 + np.abs(x)),
        "softplus": lambda: np.logaddexp(0, x),
    }
    return np.asarray(results[function.name]())


class _Cell:
    """One direction of an operator, in double precision."""

    def __init__(self, op: Op, values: Sequence[Array | None], direction: int) -> None:
        self.a: Recurrent = op.attributes
        self.kind = op.kind
        self.functions = self.a.activations[direction]
        padded = [*values, *[None] * (8 - len(values))]

        def part(position: int, shape: Shape) -> Array:
            value = padded[position]
            zeros: Array = np.zeros(shape)
            return zeros if value is None else value[direction].astype(np.float64)

        rows = GATES[op.kind] * self.a.hidden
        self.w, self.r = part(1, ()), part(2, ())
        self.wb, self.rb = np.split(part(BIAS, (2 * rows,)), 2)
        self.p = part(PEEPHOLES, (3 * self.a.hidden,)).reshape(3, -1)

    def _activate(self, which: int, sums: Array) -> Array:
        """Apply f (0) or g (1) to sums, clipping them first."""
        if self.a.clip is not None:
            sums = np.clip(sums, -self.a.clip, self.a.clip)
        return _apply(self.functions[which], sums)

    def step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """Return the states after one step of time of all sequences."""
        of_x, of_h = x @ self.w.T + self.wb, h @ self.r.T + self.rb
        if self.kind == "RNN":
            return self._activate(0, of_x + of_h), c
        if self.kind == "GRU":
            return self._gru(of_x, of_h, h), c
        n = self.a.hidden
        i, o, f, g = (of_x + of_h)[:, :n], *np.split((of_x + of_h)[:, n:], 3, axis=1)
        i = self._activate(0, i + self.p[0] * c)
        f = 1 - i if self.a.input_forget else self._activate(0, f + self.p[2] * c)
        c = f * c + i * self._activate(1, g)
        return self._activate(0, o + self.p[1] * c) * _apply(self.functions[2], c), c

    def _gru(self, of_x: Array, of_h: Array, h: Array) -> Array:
        n = self.a.hidden
        z, r = np.split(self._activate(0, of_x[:, : 2 * n] + of_h[:, : 2 * n]), 2, axis=1)
        if self.a.linear_before_reset:
            hidden = r * of_h[:, 2 * n :]
        else:
            hidden = (r * h) @ self.r[2 * n :].T + self.rb[2 * n :]
        return np.asarray((1 - z) * self._activate(1, of_x[:, 2 * n :] + hidden) + z * h)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute all steps in double; steps past a sequence's length are 0, as in onnxruntime."""
    a: Recurrent = op.attributes
    time, batch, _ = extents(op)
    padded = [*values, *[None] * (8 - len(values))]
    x = np.swapaxes(given(values, 0), 0, 1) if a.layout else given(values, 0)
    lengths = np.full(batch, time) if padded[LENGTHS] is None else padded[LENGTHS]
    assert lengths is not None
    directions = len(a.backward)
    y = np.zeros((time, directions, batch, a.hidden))
    states = np.zeros((2, directions, batch, a.hidden))
    for number, position in enumerate((INITIAL_H, INITIAL_C)):
        first = padded[position]
        if first is not None:
            states[number] = np.swapaxes(first, 0, 1) if a.layout else first
    with ieee():
        for d, backward in enumerate(a.backward):
            cell = _Cell(op, values, d)
            for step in range(time):
                running = np.flatnonzero(lengths > step)
                at = lengths[running] - 1 - step if backward else np.full(running.size, step)
                now = x[at, running].astype(np.float64)
                after = cell.step(now, states[0, d, running], states[1, d, running])
                states[0, d, running], states[1, d, running] = after
                y[at, d, running] = after[0]
        states[:, :, lengths == 0] = 0
        if a.layout:
            y, states = y.transpose(2, 0, 1, 3), np.swapaxes(states, 1, 2)
        results = {"Y": y, "Y_h": states[0], "Y_c": states[1]}
        return [results[name].astype(np.float32) for name in a.outputs]


def _reads(op: Op) -> list[IndexMap]:
    a: Recurrent = op.attributes
    maps = []
    for number in range(len(a.outputs)):
        space = Space(op, number)
        *places, _ = space.axes
        if a.layout:
            batch, *when, direction = places
        else:
            *when, direction, batch = places
        step = space.loop(extents(op)[0], "scan")
        if when and a.direction != "bidirectional":
            step = when[0] + step if a.direction == "reverse" else when[0] - step
        rows, size, hidden = space.loops((GATES[op.kind] * a.hidden, extents(op)[2], a.hidden))
        double, triple = space.loops((2 * GATES[op.kind] * a.hidden, 3 * a.hidden))
        state: Reads = (batch, direction, hidden) if a.layout else (direction, batch, hidden)
        x: Reads = (batch, step, size) if a.layout else (step, batch, size)
        reads = [
            x,
            (direction, rows, size),
            (direction, rows, hidden),
            (direction, double),
            (batch,),
        ]
        given_reads: list[Reads | None] = [*reads, state, state, (direction, triple)]
        there = zip(op.inputs, given_reads, strict=False)
        maps.append(space.make_map(*(None if tensor is None else read for tensor, read in there)))
    return maps


for _kind in GATES:
    OPS[_kind] = OpDefinition(
        _shapes, _reference, _macs, _types(), lambda op: {LENGTHS: (1, extents(op)[0])}, _reads
    )
