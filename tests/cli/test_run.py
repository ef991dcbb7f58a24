"""`covp run`: the report, the document, the inputs and the exit status."""

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from covp.evaluation.documents import Run
from covp.graph.models import load_model
from covp.graph.reference import run_reference

from .conftest import Call, wrong_outputs
from .documents import run_of


def document(call: Call, *arguments: object) -> Run:
    done = call("run", *arguments, "--json")
    assert (done.status, done.err) == (0, "")
    return run_of(done.document)


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m7", "cortex-m0plus"])
def test_document(call: Call, small: Path, platform: str) -> None:
    run = document(call, small, "-p", platform)
    assert (run.model, run.platform, run.device) == ("small", platform, "virtual")
    assert run.toolchain.startswith("zig ") and run.accelerators == []
    assert run.matches_reference
    assert [layer.target for layer in run.layers] == ["cpu"] * len(run.layers)
    macs = {layer.op: layer.macs for layer in run.layers}
    assert macs["CONV_2D"] == 4 * 4 * 4 * 3 * 3 * 2
    assert macs["FULLY_CONNECTED"] == 64 * 4
    (output,) = run.outputs
    assert math.prod(output.shape) == len(output.data) == 4
    assert run.energy_j is None


def test_counts_repeat(call: Call, small: Path) -> None:
    first, second = (document(call, small, "-p", "riscv32") for _ in range(2))
    assert first.instructions == second.instructions
    assert first.layers == second.layers and first.outputs == second.outputs


def test_outputs_are_those_of_the_reference(call: Call, small: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(8).integers(-128, 128, (1, 6, 6, 2)).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    run = document(call, small, "-p", "riscv32", "--input", tmp_path / "x.npy")
    (wanted,) = run_reference(load_model(small), [x])
    assert run.outputs[0].data == wanted.reshape(-1).tolist()


def test_seeds_give_inputs(call: Call, small: Path) -> None:
    data = [
        document(call, small, "-p", "riscv32", "--seed", seed).outputs[0].data for seed in (1, 1, 2)
    ]
    assert data[0] == data[1] != data[2]


def test_accelerated(call: Call, small: Path) -> None:
    alone = document(call, small, "-p", "riscv32")
    done = document(call, small, "-p", "riscv32", "-a", "qconv2d")
    assert done.accelerators == ["qconv2d"]
    assert {layer.op: layer.target for layer in done.layers}["CONV_2D"] == "qconv2d"
    assert done.outputs == alone.outputs
    assert done.instructions and alone.instructions
    assert done.instructions < alone.instructions


def test_table(call: Call, small: Path) -> None:
    done = call("run", small, "-p", "riscv32", "--profile")
    assert (done.status, done.err) == (0, "")
    run = document(call, small, "-p", "riscv32")
    for number in (run.instructions, *(layer.instructions for layer in run.layers)):
        assert f"{number:,}" in done.out
    assert re.search(r"bit-exact: \d+ layers x 4 inputs, checked in \d", done.out)
    assert "est." in done.out and "per MAC" in done.out and "schedule" in done.out
    assert "layers without code of their own (a reshape, or part of another one): 1\n" in done.out
    assert "SYNTHETIC" not in done.out


def test_explain(call: Call, small: Path) -> None:
    done = call("run", small, "-p", "riscv32", "-a", "qconv2d", "--explain")
    assert done.status == 0
    assert "why not elsewhere" in done.out
    assert "not qconv2d: " in done.out
    assert re.search(
        r"estimated [\d,]+ cycles, took [\d,]+\)\n +or the core: [\d,]+ cycles", done.out
    )
    done = call("run", small, "-p", "riscv32", "-a", "qconv2d", "--explain", "--json")
    ways = done.document["alternatives"]
    assert {(way["target"], way["chosen"]) for way in ways} == {("qconv2d", True), ("cpu", False)}


def test_a_slow_accelerator_is_used_with_a_warning_where_that_is_allowed(
    call: Call, small: Path
) -> None:
    slow = ("run", small, "-p", "riscv32", "-a", "qconv2d:startup_cycles=1000000")
    assert "--allow-slower gives it the layer" in call(*slow).refusal
    done = call(*slow, "--allow-slower")
    assert done.status == 0
    assert "slower on it than on the core" in done.err
    assert "qconv2d received" in done.out


def test_gcc(call: Call, small: Path) -> None:
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        refusal = call("run", small, "-p", "riscv32", "--toolchain", "gcc").refusal
        assert "apt install gcc-riscv64-unknown-elf" in refusal
        return
    run = document(call, small, "-p", "riscv32", "--toolchain", "gcc")
    assert run.toolchain.startswith("gcc ")
    assert run.outputs == document(call, small, "-p", "riscv32").outputs


def test_a_difference_is_status_1_and_said(
    call: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covp.evaluation.sample.run_all", wrong_outputs)
    done = call("run", small, "-p", "riscv32")
    assert done.status == 1
    assert "OUTPUTS DIFFER from the reference: 4 of 4 elements" in done.out
    done = call("run", small, "-p", "riscv32", "--json")
    assert done.status == 1
    assert done.document["matches_reference"] is False


def test_without_a_platform_it_says_which_one_it_takes(call: Call, small: Path) -> None:
    done = call("run", small)
    assert done.status == 0 and done.out.startswith("small on riscv32")
    assert done.err == ("warning: no -p: the platform is riscv32; covp platforms has the others\n")
    assert call("compare", small).refusal.startswith("covp: Missing option '-p'")
