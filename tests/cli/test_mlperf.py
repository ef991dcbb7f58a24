"""`covp mlperf`: the table, the JSON document, what fails, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from covp.graph.attributes import FullyConnected
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from tests.docs.test_json import check, described
from tests.firmware.mlperf.samples import LABELS, write_classes, write_spectra
from tests.processes import descendants, running

from .conftest import Call, wrong_outputs

LABEL = "MLPerf-Tiny-style, emulated, not a submission"

JSON_PAGE = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.mark.costly
def test_rows_are_models_by_platforms_by_setups(call: Call, tmp_path: Path) -> None:
    write_spectra(tmp_path / "ad01", [0, 1, 1])
    report = tmp_path / "report.md"
    done = call(
        "mlperf", "toycar", "-p", "riscv32", "-p", "mps3-an547", "-a", "gemm",
        "--setup", "gemm + qconv2d", "--data", tmp_path, "--jobs", "2",
        "--markdown", report, "--json",
    )  # fmt: skip
    assert done.status == 1, "no accelerator has a place on mps3-an547"
    document, rows = done.document, done.document["rows"]
    if JSON_PAGE.is_file():  # it is not in the wheel
        assert check("covp.mlperf/1", document) == set(described("covp.mlperf/1"))
    assert document["label"] == LABEL
    setups = [[], ["gemm"], ["gemm", "qconv2d"]]
    assert [(row["platform"], row["accelerators"]) for row in rows] == [
        (platform, setup) for platform in ("riscv32", "mps3-an547") for setup in setups
    ]
    for row, runs in zip(rows, [True] * 4 + [False] * 2, strict=True):
        assert runs == (row["reason"] is None), row["reason"]
        assert runs == (row["latency_us"] is not None) == (row["accuracy"] is not None)
        assert row["inferences"] == (9 if runs else None)
    text = report.read_text()
    assert text.startswith(f"# {LABEL}\n\n| model | platform |")
    assert len([line for line in text.splitlines() if line.startswith("| toycar")]) == 6
    assert "AUC 0.850: " in text and "has no place for accelerators" in text


@pytest.mark.costly
def test_the_table_says_what_fails_and_goes_on(call: Call, tmp_path: Path) -> None:
    write_classes(tmp_path / "kws01", "kws01", [3] * 4)
    done = call("mlperf", "kws", "toycar", "-p", "riscv32", "--data", tmp_path, "--reference")
    assert done.status == 1
    assert done.out.startswith(LABEL)
    kws = next(line for line in done.out.splitlines() if line.startswith(" kws"))
    assert "90.0%: " in kws and "0%" in kws
    assert "kws01, 4 files, 4 inferences by the reference" in done.out
    assert f"toycar on riscv32: {tmp_path}: has neither {LABELS} nor ad01/{LABELS}" in done.out
    assert "cycles on riscv32: estimated" in done.out


def test_a_wrong_output_is_status_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covp.evaluation.sample.run_all", wrong_outputs)
    done = call("mlperf", "toycar", "-p", "riscv32", "--jobs", "1")
    assert done.status == 1 and "OUTPUTS DIFFER" in done.out


def model_of(inputs: int, outputs: int, zero_point: int, path: Path) -> Path:
    """A model file with a fully connected layer."""
    builder = GraphBuilder("own")
    x = builder.input((1, inputs), scale=0.5, zero_point=zero_point)
    values = np.random.default_rng(1).integers(-127, 128, (outputs, inputs))
    weights = builder.constant(values.astype(np.int8), 0.01)
    dense = builder.add("FULLY_CONNECTED", x, weights, attributes=FullyConnected(), scale=0.2)
    path.write_bytes(write_tflite(builder.graph(dense)))
    return path


@pytest.mark.costly
def test_a_model_of_ones_own(call: Call, tmp_path: Path) -> None:
    """Its sizes say what it is for; one whose input means something else gets no accuracy."""
    write_classes(tmp_path / "kws01", "kws01", [0, 1])
    fits = model_of(490, 12, 83, tmp_path / "fits.tflite")
    other = model_of(490, 12, 3, tmp_path / "other.tflite")
    free = model_of(8, 3, 0, tmp_path / "free.tflite")
    done = call("mlperf", fits, other, free, "-p", "riscv32", "--data", tmp_path, "--json")
    rows = done.document["rows"]
    assert [row["benchmark"] for row in rows] == ["kws01", "kws01", None]
    assert [row["accuracy"] is None for row in rows] == [False, True, True]
    assert "the input's zero point is 3; samples of kws01 are for 83" in rows[1]["reason"]
    assert rows[2]["reason"] is None and rows[2]["latency_us"] > 0


REFUSED = {
    "an unknown model": (("nope",), 2, "nope"),
    "an unknown accelerator": (("toycar", "-a", "nope"), 2, "nope"),
    "an empty set-up": (("toycar", "--setup", ""), 2, ""),
    "no folder": (("toycar", "--data", "none"), 2, "none: is not a folder"),
    "no samples": (("toycar", "--data", "."), 2, f"neither {LABELS} nor ad01"),
    "no task": (("cifar10", "--data", "."), 2, "cifar10"),
    "a reference without data": (("toycar", "--reference"), 2, "--data"),
    "a report nowhere": (("toycar", "--markdown", "no/where.md"), 2, "no is not a folder"),
    "a float model": (("kws_float", "--data", "."), 2, "kws_float"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_wrong_is_one_line_before_anything_runs(
    kind: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, status, text = REFUSED[kind]
    done = call("mlperf", *arguments, "-p", "riscv32")
    assert done.status == status and text in done.refusal


@pytest.mark.costly
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    write_spectra(tmp_path / "ad01", [0, 1] * 200, windows=100)
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-c", "from covp.cli.main import main; main()", "mlperf", "toycar"]
    command += ["-p", "riscv32", "--data", str(tmp_path), "--jobs", "2"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while len(descendants(process.pid)) < 2:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(1)
        workers = descendants(process.pid)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 20
    while running(workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = running(workers)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left and out == ""
    if number == signal.SIGINT:
        assert (process.returncode, err) == (130, "covp: interrupted\n")
        assert not list((tmp_path / "tmp").glob("covp-*"))
