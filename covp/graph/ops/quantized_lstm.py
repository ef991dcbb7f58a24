"""The integer LSTM: its numbers, and its arithmetic in numpy.

int8 activations follow LiteRT's reference kernel (tensorflow/lite/kernels/lstm_eval.cc,
EvalInteger8x8_16, and internal/reference/portable_tensor_utils.cc): gemmlowp's logistic and tanh
of int16, products of 16-bit numbers rounded once. int16 activations, which LiteRT does not have,
follow TFLM (tensorflow/lite/micro/kernels/lstm_eval.{h,cc} and internal/reference/integer_ops):
logistic and tanh interpolated in a table, products rescaled as MUL does. TFLM has the latter for
int8 too; the two differ by a few units of the int16 gates, seldom by one of an int8 output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.fixed_point import logistic, tanh
from covp.graph.graph import Op
from covp.graph.ops.int16 import sigmoid_table
from covp.graph.quantization import (
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)

Array = NDArray[Any]
Factor = tuple[int, int]

GATE_BITS = 12
"""Fractional bits of a gate before its activation."""
UNIT_BITS = 15
"""Fractional bits of the results of activations."""
_LEAST, _MOST = -32768, 32767
_CELL_POWERS = range(-15, -8)


@dataclass(frozen=True, eq=False)
class Gate:
    """One gate: sigmoid or tanh of two matrix products, each rescaled and saturated to int16.

    Attributes:
        weights, recurrent: int8, (cells, features) and (cells, cells).
        bias: int64 (cells,), without the product of weights and input zero point, which is in it.
        recurrent_bias: int64 (cells,), what the hidden state's zero point gives.
        factor, recurrent_factor: multiplier and shift of the products.
    """

    weights: Array
    recurrent: Array
    bias: Array
    recurrent_bias: Array
    factor: Factor
    recurrent_factor: Factor


@dataclass(frozen=True, eq=False)
class QuantizedLstm:
    """The numbers of a quantized UNIDIRECTIONAL_SEQUENCE_LSTM.

    Attributes:
        time_major: of the input and output.
        gates: input, forget, cell (tanh) and output gate.
        cell_power: the scale of the int16 cell state is 2**cell_power.
        clip: magnitude that the cell state is held to; 0: none.
        hidden_factor, hidden_zero_point: of output gate times tanh of the cell state.
        dtype: of input, hidden state and output: int8 or int16.
    """

    time_major: bool
    gates: tuple[Gate, ...]
    cell_power: int
    clip: int
    hidden_factor: Factor
    hidden_zero_point: int
    dtype: np.dtype[Any]

    @staticmethod
    def of(op: Op) -> QuantizedLstm:
        """Return the numbers of an operator.

        Raises:
            ModelError: a scale is missing or is not what the arithmetic needs.
        """
        source, hidden, cell = (op.input(position) for position in (0, 18, 19))
        tensors = [source, hidden, cell, *(op.input(position) for position in range(1, 9))]
        for tensor in tensors:
            if tensor.quantization is None or tensor.quantization.per_channel:
                raise ModelError(f"tensor {tensor.name} needs one scale", tensor=tensor.name)
        power = math.log2(cell.scale)
        if power != round(power) or int(power) not in _CELL_POWERS or cell.zero_point:
            raise ModelError(
                f"cell state {cell.name} has scale {cell.scale:g} and zero point "
                f"{cell.zero_point}; a power of two from 2**-15 to 2**-9 and 0 are needed"
            )
        clip = min(op.attributes.cell_clip / cell.scale, float(_MOST))
        exact = 2.0 ** (-2 * UNIT_BITS) / hidden.scale
        # LiteRT rounds the factor to float32
        effective = exact if source.dtype == np.int16 else float(np.float32(exact))
        return QuantizedLstm(
            op.attributes.time_major,
            tuple(_gate(op, position) for position in range(4)),
            int(power),
            max(int(clip), 0),
            quantize_multiplier(effective),
            hidden.zero_point,
            source.dtype,
        )


def _gate(op: Op, gate: int) -> Gate:
    weights, recurrent, bias = (op.input(first + gate) for first in (1, 5, 12))
    if weights.data is None or recurrent.data is None or bias.data is None:
        raise ModelError(
            f"tensor {weights.name} and its like must be constant; freeze the model",
            tensor=weights.name,
        )
    if weights.zero_point or recurrent.zero_point:
        raise ModelError(f"weights {weights.name} or {recurrent.name} have a zero point")
    source, hidden = op.input(0), op.input(18)

    def factor(first: float, second: float) -> Factor:
        return quantize_multiplier(float(np.float32(first) * np.float32(second)) * 2.0**GATE_BITS)

    return Gate(
        weights.data,
        recurrent.data,
        bias.data.astype(np.int64) - source.zero_point * weights.data.sum(axis=1, dtype=np.int64),
        -hidden.zero_point * recurrent.data.sum(axis=1, dtype=np.int64),
        factor(source.scale, weights.scale),
        factor(hidden.scale, recurrent.scale),
    )


def run_quantized_lstm(
    numbers: QuantizedLstm, source: Array, hidden: Array, cell: Array
) -> list[Array]:
    """Return the sequence of hidden states, and both states afterwards.

    Args:
        numbers: of the layer.
        source: (batch, steps, features), or (steps, batch, features) where time-major.
        hidden, cell: the previous states, of batch * cells elements.
    """
    rows = source if numbers.time_major else source.swapaxes(0, 1)
    h = hidden.astype(np.int64).reshape(rows.shape[1], -1)
    c = cell.astype(np.int64).reshape(h.shape)
    results = []
    for row in rows.astype(np.int64):
        h, c = _step(numbers, row, h, c)
        results.append(h)
    sequence = np.stack(results, axis=0 if numbers.time_major else 1).astype(numbers.dtype)
    return [
        sequence,
        h.astype(numbers.dtype).reshape(hidden.shape),
        c.astype(np.int16).reshape(cell.shape),
    ]


def _step(numbers: QuantizedLstm, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    table = numbers.dtype == np.int16
    sums = [_gate_sum(gate, x, h, wide=table) for gate in numbers.gates]
    sigmoid = sigmoid_by_table if table else lambda raw: logistic(raw, UNIT_BITS - GATE_BITS, 16)
    i, f, o = (sigmoid(sums[gate]) for gate in (0, 1, 3))
    g = tanh_by_table(sums[2], -GATE_BITS) if table else tanh(sums[2], UNIT_BITS - GATE_BITS, 16)
    power = numbers.cell_power
    c = _clip16(
        _shift_product(f * c, UNIT_BITS, table)
        + _shift_product(i * g, 2 * UNIT_BITS + power, table)
    )
    if numbers.clip:
        c = np.clip(c, -numbers.clip, numbers.clip)
    squashed = tanh_by_table(c, power) if table else tanh(c, UNIT_BITS + power, 16)
    scaled = multiply_by_quantized_multiplier(o * squashed, *numbers.hidden_factor)
    info = np.iinfo(numbers.dtype)
    return np.clip(scaled + numbers.hidden_zero_point, info.min, info.max), c


def _gate_sum(gate: Gate, x: Array, h: Array, *, wide: bool) -> Array:
    rescale = multiply_by_reduced_multiplier if wide else multiply_by_quantized_multiplier
    own = rescale(x @ gate.weights.T.astype(np.int64) + gate.bias, *gate.factor)
    back = h @ gate.recurrent.T.astype(np.int64) + gate.recurrent_bias
    recurrent = rescale(back, *gate.recurrent_factor)
    return _clip16(_clip16(own) + (_clip16(recurrent) if wide else recurrent))


def _shift_product(product: Array, bits: int, table: bool) -> Array:
    """Shift a product of two int16 numbers right by ``bits``."""
    if table:
        return _clip16(multiply_by_quantized_multiplier(product, *quantize_multiplier(2.0**-bits)))
    return rounding_divide_by_pot(product, bits)


def _clip16(values: Array) -> Array:
    return np.asarray(np.clip(values, _LEAST, _MOST))


def sigmoid_by_table(raw: Array) -> Array:
    """Return sigmoid of Q3.12 in Q0.15, as reference_integer_ops::Logistic of int16."""
    value = raw * 3
    index, fraction = np.abs(value) >> 9, np.abs(value) & 511
    result = _interpolate_sigmoid(index, fraction, 9, 0x7FFF << 10)
    signed = np.where(value >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1)
    return np.asarray(signed >> 10)


def tanh_by_table(raw: Array, power: int) -> Array:
    """Return tanh(raw * 2**power) in Q0.15, as reference_integer_ops::Tanh of int16."""
    left = UNIT_BITS + power - 3
    value = raw * (3 << left) if left >= 0 else (raw * 3 + (1 << (-left - 1))) >> -left
    index, fraction = np.abs(value) >> 8, np.abs(value) & 255
    result = _interpolate_sigmoid(index, fraction, 8, 0xFFFF << 8)
    half = 1 << 23
    signed = np.where(value >= 0, result - half + (1 << 7), half - result + (1 << 7) - 1)
    return np.asarray(signed >> 8)


def _interpolate_sigmoid(index: Array, fraction: Array, bits: int, most: int) -> Array:
    table = sigmoid_table().astype(np.int64)
    low = np.minimum(index, 254)
    between = (table[low] << bits) + fraction * (table[low + 1] - table[low])
    return np.where(index >= 255, most, between)
