"""NE16: its cycles are those of its RTL, its weights lie as its streamer fetches them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from covp.accel_backends.ne16.backend import Ne16, pack, unpack
from covp.errors import UsageError
from covp.evaluation import evaluate
from covp.hardware.job import JobValues
from covp.testing import ConvCase
from covp.testing.layers import STRATEGIES
from covp.testing.verify import check

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PUBLIC_MODEL, RTL = BENCHMARKS / "ne16_cycles.csv", BENCHMARKS / "ne16_rtl.csv"
POINTWISE, FULL, DEPTHWISE, LINEAR = range(4)


def job_of(mode: int, height: int, width: int, inputs: int, outputs: int, **more: int) -> JobValues:
    sizes = {"OUT_HEIGHT": height, "OUT_WIDTH": width, "IN_CHANNELS": inputs}
    values = {"MODE": mode, "WEIGHT_BITS": 8, "STRIDE": 1, **sizes, "OUT_CHANNELS": outputs}
    return JobValues(**{**values, **more})


def cycles(job: JobValues, **parameters: Any) -> int:
    return Ne16(parameters).timing(job, 0).cycles


@pytest.mark.law
def test_cycles_are_those_of_the_rtl() -> None:
    modes = {"1x1": POINTWISE, "3x3": FULL, "depthwise": DEPTHWISE, "linear": LINEAR}
    with RTL.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["mode"] for row in rows} == modes.keys() and len(rows) > 300
    for row in rows:
        sizes = [int(row[name]) for name in ("height", "width", "inputs", "outputs")]
        more = {"WEIGHT_BITS": int(row["bits"]), "STRIDE": int(row["stride"])}
        assert cycles(job_of(modes[row["mode"]], *sizes, **more)) == int(row["cycles"]), row
        assert row["wrong"] == "0", "the RTL's result is another: its layer was described wrongly"


@pytest.mark.law
def test_the_public_model_counts_no_start() -> None:
    with PUBLIC_MODEL.open(encoding="utf-8") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 108
    for row in rows:
        mode = DEPTHWISE if row["depthwise"] else FULL if row["kernel"] == 3 else POINTWISE
        job = job_of(mode, row["height"], row["width"], row["inputs"], row["outputs"])
        waits = 2 if mode == POINTWISE and row["outputs"] == 1 else 0
        assert cycles(job) == row["cycles"] + 2 + waits, row


@pytest.mark.law
def test_stride_two_keeps_four_pixels_of_a_tile() -> None:
    strided = job_of(FULL, 8, 5, 32, 32, STRIDE=2)
    assert cycles(strided) == 12 * cycles(job_of(FULL, 3, 3, 32, 32))


@pytest.mark.law
def test_cycles_by_hand() -> None:
    """Fully connected: 640 inputs in three steps of 256, 8 bits of each of 32 outputs."""
    steps = 3 * ((6 + 16) + 6 + (6 + 32 * 8) + 2)
    assert cycles(job_of(LINEAR, 1, 1, 640, 32)) == 2 + steps + 8 + (9 + 32) + (8 + 4) + (3 + 9 + 1)
    # weights of 4 bits halve the products of 3x3 layers alone
    assert cycles(job_of(FULL, 3, 3, 16, 32)) - cycles(
        job_of(FULL, 3, 3, 16, 32, WEIGHT_BITS=4)
    ) == (32 * 4)
    wide, narrow = job_of(POINTWISE, 3, 3, 16, 32), job_of(POINTWISE, 3, 3, 16, 32, WEIGHT_BITS=4)
    assert cycles(wide) == cycles(narrow)


@pytest.mark.law
def test_a_narrow_port_takes_as_many_cycles_as_an_access_has_words() -> None:
    job = job_of(FULL, 3, 3, 16, 32)
    more = 25 * (4 - 1) + 32 * 8 * (5 - 1) + 9 * (8 - 1)
    assert cycles(job, bytes_per_cycle=4) == cycles(job) + more
    assert cycles(job, contention=1) > cycles(job)


@pytest.mark.law
@hypothesis.given(st.data())
def test_each_bit_lies_where_the_streamer_fetches_it(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from([POINTWISE, FULL, DEPTHWISE, LINEAR]))
    bits, channels = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 40))
    outputs = 1 if mode == DEPTHWISE else data.draw(st.integers(1, 5))
    taps = 9 if mode in (FULL, DEPTHWISE) else 1
    seed = data.draw(st.integers(0, 2**32 - 1))
    weights = np.random.default_rng(seed).integers(0, 1 << bits, (outputs, taps, channels))
    words = -(-channels // 16)
    packed = pack(weights.astype(np.uint8), mode, bits)
    assert packed.size == outputs * words * bits * taps * 2
    output, tap = data.draw(st.integers(0, outputs - 1)), data.draw(st.integers(0, taps - 1))
    channel, bit = data.draw(st.integers(0, channels - 1)), data.draw(st.integers(0, bits - 1))
    word, place = divmod(channel, 16)
    at = {
        LINEAR: (output * bits + bit) * words + word,
        DEPTHWISE: (word * bits + bit) * 9 + tap,
    }.get(mode, ((output * words + word) * bits + bit) * taps + tap)
    found = packed[2 * at + place // 8] >> (place % 8) & 1
    assert found == weights[output, tap, channel] >> bit & 1
    shape = {
        LINEAR: (outputs, bits, words, 2),
        DEPTHWISE: (words, bits, 9, 2),
    }.get(mode, (outputs, words, bits, taps, 2))
    assert np.array_equal(unpack(packed.reshape(shape), mode, channels), weights)


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_layers(kind: str) -> None:
    @hypothesis.settings(max_examples=15)
    @hypothesis.given(st.data())
    def run_layer(data: st.DataObject) -> None:
        case = replace(data.draw(STRATEGIES[kind](kind)), dtype="int8", batch=1, dilation=(1, 1))
        limit = data.draw(st.sampled_from([127, 7, 1]))  # of 8, 4 and 2 bits
        side = 1 if kind == "FULLY_CONNECTED" else 3
        if kind == "CONV_2D":
            side = data.draw(st.sampled_from([1, 3]))
        size = tuple(max(side, extent) for extent in case.size)
        stride = (case.stride[0],) * 2 if case.stride[0] <= 2 else (1, 1)
        case = replace(case, kernel=(side, side), size=size, stride=stride, padding=None)
        try:
            check("ne16", replace(case, weight_limit=limit))
        except UsageError as error:
            assert "does not accept" in str(error)  # several output channels of one input channel
            hypothesis.reject()

    run_layer()


def test_a_model_has_the_bits_of_the_reference() -> None:
    result = evaluate("kws", "riscv32", ("ne16",))
    assert result.matches_reference
    assert sum(entry.offload is not None for entry in result.profile.layers) == 9


def test_kernels_of_other_sizes_stay_with_the_core() -> None:
    case = ConvCase("CONV_2D", size=(9, 9), channels=(3, 4), kernel=(5, 5))
    with pytest.raises(UsageError, match="does not accept"):
        check("ne16", case)
