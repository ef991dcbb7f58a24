"""``--streaming`` and ``--state`` on the command line: reports, refusals, other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call


def test_a_network_that_pads_time_is_refused(call: Call) -> None:
    done = call("run", "kws", "-p", "riscv32", "--streaming")
    assert done.status == 1 and done.out == ""
    assert "kws cannot run on a stream along axis 1: conv_2d_0 (CONV_2D) pads time" in done.err
    assert len(done.err.splitlines()) == 1
    failed = call("run", "kws", "-p", "riscv32", "--streaming", "--json")
    assert "padding='valid'" in json.loads(failed.out)["error"]["message"]


@pytest.mark.parametrize("wrong", ["--streaming=-1", "--streaming=x", "--state=h0", "--state=a=b"])
def test_what_cannot_be_is_one_line(call: Call, wrong: str) -> None:
    done = call("run", "toycar", "-p", "riscv32", wrong)
    assert done.status in (1, 2) and "Traceback" not in done.err
    assert [line for line in done.err.splitlines() if line.startswith(("covp:", "Error:"))]


@pytest.mark.slow
def test_tune_and_compare_know_streams(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = call("compare", "sww", "-p", "riscv32", "-p", "cortex-m4", "--streaming", "--json")
    macs = [row["run"]["streaming"]["macs"] for row in json.loads(done.out)["rows"]]
    assert macs == [46_040, 46_040]
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    done = call("tune", "sww", "-p", "riscv32", "--streaming", "--trials", "1", "--json")
    layers = json.loads(done.out)["layers"]
    assert len(layers) == 10 and layers[0]["op"] == "DEPTHWISE_CONV_2D"
