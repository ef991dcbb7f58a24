"""Problems of cells with a state: SVDF, LSTM, GRU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covp.graph.ops.quantized_lstm import Gate, QuantizedLstm, run_quantized_lstm
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.testing.problem import Array, Problem
from covp.testing.requantization import Requantization

Factor = tuple[int, int]
"""Multiplier and shift."""


@dataclass(frozen=True, eq=False, repr=False)
class SvdfProblem(Problem):
    """One step of an SVDF layer.

    Source: EvalIntegerSvdfReference of tensorflow/lite/micro/kernels/svdf_common.cc.

    Attributes:
        input: int8 (batch, features).
        feature_weights: int8 (filters, features).
        time_weights: int16 (filters, steps).
        bias: int32 (units,), or None.
        state: int16 (batch, filters, steps), the oldest step first.
        rank: filters of each unit.
        zero_point: of the input.
        state_factor: of what a filter gives to the state.
        requantization: of a unit's sum, with one multiplier.
    """

    input: Array
    feature_weights: Array
    time_weights: Array
    bias: Array | None
    state: Array
    rank: int
    zero_point: int
    state_factor: Factor
    requantization: Requantization

    def expected(self) -> tuple[Array, Array]:
        """Return the output, int8 (batch, units), and the state of afterwards."""
        x = self.input.astype(np.int64) - self.zero_point
        dots = x @ self.feature_weights.T.astype(np.int64)
        newest = np.clip(
            multiply_by_quantized_multiplier(dots, *self.state_factor), -(1 << 15), (1 << 15) - 1
        )
        state = np.concatenate([self.state[..., 1:], newest[..., None].astype(np.int16)], axis=2)
        filters = (state.astype(np.int64) * self.time_weights).sum(axis=2)
        sums = filters.reshape(len(x), -1, self.rank).sum(axis=2)
        if self.bias is not None:
            sums = sums + self.bias
        return self.requantization.apply(sums.astype(np.int32)), state


@dataclass(frozen=True, eq=False, repr=False)
class LstmProblem(Problem):
    """An integer LSTM over a sequence; the gates are input, forget, cell and output gate.

    int8: LiteRT's reference kernel, EvalInteger8x8_16 of tensorflow/lite/kernels/lstm_eval.cc;
    int16: TFLM's, tensorflow/lite/micro/kernels/lstm_eval.cc. They differ in their sigmoid and
    tanh; TFLM has int8 with the latter ones too, which is not this problem.

    Attributes:
        input: int8 or int16 (batch, steps, features).
        weights: int8 (4, cells, features).
        recurrent_weights: int8 (4, cells, cells).
        bias: int32, for int16 inputs int64; (4, cells).
        hidden: of the input's type (batch, cells): the state of before.
        cell: int16 (batch, cells), its scale is 2**cell_power.
        factors, recurrent_factors: (multiplier, shift) of each gate's products, to 2**-12.
        hidden_factor: of output gate times tanh of the cell.
        zero_points: of input and hidden state, 0 for int16.
        cell_power: from -15 to -9.
    """

    input: Array
    weights: Array
    recurrent_weights: Array
    bias: Array
    hidden: Array
    cell: Array
    factors: tuple[Factor, ...]
    recurrent_factors: tuple[Factor, ...]
    hidden_factor: Factor
    zero_points: tuple[int, int] = (0, 0)
    cell_power: int = -11

    def expected(self) -> tuple[Array, Array, Array]:
        """Return hidden states (batch, steps, cells), and the last hidden state and cell."""
        gates = tuple(
            Gate(
                self.weights[i],
                self.recurrent_weights[i],
                self.bias[i] - self.zero_points[0] * self.weights[i].sum(axis=1, dtype=np.int64),
                -self.zero_points[1] * self.recurrent_weights[i].sum(axis=1, dtype=np.int64),
                self.factors[i],
                self.recurrent_factors[i],
            )
            for i in range(4)
        )
        numbers = QuantizedLstm(
            False,
            gates,
            self.cell_power,
            0,
            self.hidden_factor,
            self.zero_points[1],
            self.input.dtype,
        )
        sequence, hidden, cell = run_quantized_lstm(numbers, self.input, self.hidden, self.cell)
        return sequence, hidden, cell


@dataclass(frozen=True, eq=False, repr=False)
class GruProblem(Problem):
    """A float32 GRU over a sequence; the gates are update (z), reset (r) and candidate (h).

    Source: GRU of the ONNX operator specification, without clipping. Compare with a tolerance:
    kernels round where they please.

    Attributes:
        input: float32 (batch, steps, features).
        weights: (3, cells, features).
        recurrent_weights: (3, cells, cells).
        bias, recurrent_bias: (3, cells).
        hidden: (batch, cells): the state of before.
        reset_after: the reset gate multiplies the recurrent product (Keras' and PyTorch's form),
            not the state before it.
    """

    input: Array
    weights: Array
    recurrent_weights: Array
    bias: Array
    recurrent_bias: Array
    hidden: Array
    reset_after: bool = True

    def expected(self) -> tuple[Array, Array]:
        """Return the hidden states (batch, steps, cells) and the last of them, as doubles."""
        h = self.hidden.astype(np.float64)
        states: list[Any] = []
        for x in np.moveaxis(self.input.astype(np.float64), 1, 0):
            own = [x @ w.T + b for w, b in zip(self.weights, self.bias, strict=True)]
            back = [self._back(gate, h) for gate in (0, 1)]
            z, r = (1 / (1 + np.exp(-(own[gate] + back[gate]))) for gate in (0, 1))
            inner = r * self._back(2, h) if self.reset_after else self._back(2, r * h)
            h = (1 - z) * np.tanh(own[2] + inner) + z * h
            states.append(h)
        return np.stack(states, axis=1).astype(np.float32), h.astype(np.float32)

    def _back(self, gate: int, h: Array) -> Array:
        return np.asarray(h @ self.recurrent_weights[gate].T + self.recurrent_bias[gate])
