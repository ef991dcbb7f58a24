"""`--overlap`: what is printed and what the JSON has."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from covp.graph.attributes import Conv2D, DepthwiseConv2D, Elementwise, Padding
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

from .conftest import Call

UNIT = ("-p", "cortex-m4", "-a", "gemm:bytes_per_cycle=1", "--untuned")


@pytest.fixture
def branches(tmp_path: Path) -> Path:
    """A convolution beside a depthwise one, and their sum."""
    random, net = np.random.default_rng(1), GraphBuilder("branches")
    x = net.input((1, 16, 16, 8), scale=0.05, zero_point=-4)
    w = net.constant(random.integers(-127, 128, (8, 3, 3, 8)).astype(np.int8), 0.01)
    v = net.constant(random.integers(-127, 128, (1, 3, 3, 8)).astype(np.int8), 0.01)
    same, one = Padding(1, 1, 1, 1), (1, 1)
    left = net.add("CONV_2D", x, w, attributes=Conv2D(one, same), scale=0.3)
    right = net.add("DEPTHWISE_CONV_2D", x, v, attributes=DepthwiseConv2D(one, same), scale=0.1)
    total = net.add("ADD", left, right, attributes=Elementwise(), scale=0.35)
    path = tmp_path / "branches.tflite"
    path.write_bytes(write_tflite(net.graph(total)))
    return path


@pytest.mark.costly
def test_promise_and_result_are_printed_and_in_the_json(call: Call, branches: Path) -> None:
    text = call("run", branches, *UNIT, "--overlap", "--explain").out
    found = re.search(
        r"overlap: ([\d,]+) of ([\d,]+) cycles are hidden, promised ([\d,]+), took ([\d,]+)", text
    )
    assert found and "schedules of core and units" in text
    document = call("run", branches, *UNIT, "--overlap", "--json").document
    record = document["overlap"]
    names = ("hidden_cycles", "alone_cycles", "promised_cycles", "took_cycles")
    assert [f"{record[name]:,}" for name in names] == list(found.groups())
    assert record["hidden_cycles"] == record["alone_cycles"] - record["promised_cycles"] > 0
    assert record["took_cycles"] == document["cycles"]
    bases = {each["basis"] for each in record["alternatives"]}
    assert bases == {"measured parts", "evaluation only"}
    assert call("run", branches, *UNIT, "--json").document["overlap"] is None


def test_it_needs_an_accelerator(call: Call, branches: Path) -> None:
    done = call("run", branches, "-p", "cortex-m4", "--overlap")
    assert done.status == 2 and "name one with --accel" in done.err


@pytest.mark.costly
def test_compare_shows_what_it_brings(call: Call, branches: Path) -> None:
    rows = [
        call("compare", branches, *UNIT, *more, "--json").document["rows"][0]
        for more in ((), ("--overlap",))
    ]
    waiting, beside = (row["accelerated"]["cycles"] for row in rows)
    assert beside < waiting and rows[1]["cpu"]["cycles"] == rows[0]["cpu"]["cycles"]
