"""`covp compare`: one row per model, and the arithmetic of the reduction."""

import re
from pathlib import Path

import pytest

from covp.evaluation.documents import Compare

from .conftest import Call, wrong_outputs
from .documents import add_up, read


@pytest.mark.costly
def test_document(call: Call, small: Path) -> None:
    arguments = (small, "toycar", "-p", "riscv32", "-a", "qconv2d")
    done = call("compare", *arguments, "--json")
    assert (done.status, done.err) == (0, "")
    found = read(done.document, Compare)
    assert (found.platform, found.accelerators) == ("riscv32", ["qconv2d"])
    assert [row.model for row in found.rows] == ["small", "toycar"]
    for row in found.rows:
        cpu, accelerated = add_up(row.cpu), add_up(row.accelerated)
        assert cpu.accelerators == [] and accelerated.accelerators == ["qconv2d"]
        assert cpu.matches_reference and accelerated.matches_reference
        assert cpu.outputs == accelerated.outputs
        assert cpu.instructions and accelerated.instructions
        assert row.instructions_saved == pytest.approx(
            1 - accelerated.instructions / cpu.instructions
        )
        assert cpu.cycles and accelerated.cycles
        assert row.speedup == pytest.approx(cpu.cycles / accelerated.cycles)
    small_row, toycar = found.rows
    assert small_row.mac_coverage == pytest.approx(1152 / (1152 + 256))
    assert (toycar.instructions_saved, toycar.speedup, toycar.mac_coverage) == (0, 1, 0)


def test_table(call: Call, small: Path) -> None:
    done = call("compare", small, "-p", "riscv32", "-a", "qconv2d")
    assert (done.status, done.err) == (0, "")
    found = call("compare", small, "-p", "riscv32", "-a", "qconv2d", "--json").document
    (row,) = found["rows"]
    for number in (row["cpu"]["instructions"], row["accelerated"]["instructions"]):
        assert f"{number:,}" in done.out
    assert f"{row['instructions_saved']:.1%}" in done.out
    assert f"{row['speedup']:.1f}x" in done.out and "reduction" in done.out
    assert "cycles: estimated by " in done.out
    assert cells(done.out, "small")[-1] == "yes"


def cells(table: str, model: str) -> list[str]:
    """The columns of a model's row."""
    (line,) = (line for line in table.splitlines() if line.strip().startswith(model))
    return re.split(r"\s{2,}", line.strip())


@pytest.mark.costly
def test_floats_are_close_not_bit_exact(call: Call) -> None:
    done = call("compare", "toycar_float", "-p", "riscv32f", "-a", "vanilla")
    assert done.status == 0
    assert cells(done.out, "toycar_float")[-1] == "within 1e-05"


def test_a_difference_is_status_1_and_in_its_row(
    call: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covp.evaluation.sample.run_all", wrong_outputs)
    done = call("compare", small, "-p", "riscv32", "-a", "qconv2d")
    assert done.status == 1
    assert cells(done.out, "small")[-1] == "OUTPUTS DIFFER"


def test_an_accelerator_is_needed(call: Call, small: Path) -> None:
    done = call("compare", small, "-p", "riscv32")
    assert done.status == 2
    assert "--accel" in done.refusal
