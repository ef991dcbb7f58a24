"""Fixed-point functions and layers of functions against the functions of real numbers, over all
parameters that the readers accept: what is accepted is computed, what is not is rejected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph import fixed_point
from covp.graph.ops import quantized_lstm, quantized_rows
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from tests.functions import FUNCTIONS, Function

Array = NDArray[Any]
SCALES = [float(np.float32(m * 2.0**e)) for e in range(-40, 21) for m in (1.0, 1.37)]


def raw_numbers(width: int) -> Array:
    """All of 16 bits; of 32 bits both ends, the middle, and numbers of every size."""
    if width == 16:
        return np.arange(-(1 << 15), 1 << 15)
    sizes = np.unique(np.logspace(0, 31, 30_000, base=2).astype(np.int64))
    near = np.arange(3000)
    positive = np.unique(np.r_[sizes, near, (1 << 31) - 1 - near])
    positive = positive[positive < 1 << 31]
    return np.asarray(np.r_[-positive - 1, positive])


# integer bits up to those of the largest cell scale of an LSTM, 2**-9, doubled by its tanh
BITS = [(16, bits) for bits in range(8)] + [(32, bits) for bits in range(6)]


@pytest.mark.parametrize(("width", "bits"), BITS)
def test_exp_logistic_and_tanh(width: int, bits: int) -> None:
    raw = raw_numbers(width)
    one = 2.0 ** (width - 1)
    x = raw / 2.0 ** (width - 1 - bits)
    steps = {16: (2, 7, 12.5), 32: (493, 152, 304)}[width]  # gemmlowp's own errors
    down = raw[raw <= 0]
    powers = fixed_point.exp_on_negative_values(down, bits, width)
    assert np.abs(powers - np.exp(x[raw <= 0]) * one).max() < steps[0]
    with np.errstate(over="ignore"):
        sigmoid = 1 / (1 + np.exp(-x))
    assert np.abs(fixed_point.logistic(raw, bits, width) - sigmoid * one).max() < steps[1]
    assert np.abs(fixed_point.tanh(raw, bits, width) - np.tanh(x) * one).max() < steps[2]


@pytest.mark.parametrize("power", range(-15, -8))
def test_tables_of_sigmoid_and_tanh(power: int) -> None:
    raw = np.arange(-(1 << 15), 1 << 15)
    found = quantized_lstm.tanh_by_table(raw, power)
    assert np.abs(found - np.tanh(raw * 2.0**power) * 2**15).max() < 2.5
    sigmoid = quantized_lstm.sigmoid_by_table(raw)
    assert np.abs(sigmoid - 2**15 / (1 + np.exp(-raw / 4096))).max() < 1.5


def test_reciprocals_and_roots() -> None:
    whole = raw_numbers(32)
    whole = whole[whole >= 1]
    inverse, bits = fixed_point.reciprocal(whole)
    np.testing.assert_allclose(inverse / 2.0**31 / 2.0**bits, 1 / whole, rtol=5e-9)
    root, shift = fixed_point.inverse_root(whole)
    np.testing.assert_allclose(root / 2.0**31 * 2.0**shift, 1 / np.sqrt(whole), rtol=1.3e-6)
    fraction = raw_numbers(32)
    fraction = fraction[fraction >= 0]
    found = fixed_point.one_over_one_plus_x(fraction) / 2.0**31
    assert np.abs(found - 1 / (1 + fraction / 2.0**31)).max() < 1e-8


def test_logarithm() -> None:
    """Of 1 up to 4095, the longest row of LOG_SOFTMAX, with 12 integer bits."""
    raw = np.unique(np.logspace(19, 31, 20_000, base=2).astype(np.int64))
    raw = raw[raw < 1 << 31]
    found = quantized_rows.logarithm(raw) / 2.0**26
    assert np.abs(found - np.log(raw / 2.0**19)).max() < 2e-7


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_layers_of_every_scale(function: Function) -> None:
    """Each scale from 2**-40 to 2**20: as close as with usual ones, or rejected with the reason."""
    rejected = []
    for scale in SCALES:
        for zero_point in (-128, 0, 127) if function.dtype == "int8" else (0,):
            x = function.values()
            try:
                graph = read_tflite(write_tflite(function.graph(scale, zero_point)))
            except ModelError as error:
                assert "scale" in str(error)
                rejected.append(scale)
                continue
            found = run_reference(graph, [x])[0]
            off = np.abs(found - function.exact(x, scale, zero_point))
            assert off.max() <= function.tolerance(scale), (scale, zero_point)
    assert all(function.rejects(scale) for scale in rejected)


def test_hard_swish_rejects_what_its_output_cannot_reach() -> None:
    case = next(f for f in FUNCTIONS if f.kind == "HARD_SWISH")
    source = case.graph(1.0, 0)
    quantization = source.outputs[0].quantization
    assert quantization is not None
    quantization.scale[...] = 1 / 129
    with pytest.raises(ModelError, match="HARD_SWISH of int8 needs more than 1/128"):
        read_tflite(write_tflite(source))
