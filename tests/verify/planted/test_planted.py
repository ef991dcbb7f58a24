"""`covp verify FILE` finds planted bugs, and takes nothing for one in the files without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.verify import verify
from tests.verify.planted.plants import PLANTS, Plant

HERE = Path(__file__).parent


QUICK = ("fixed_delay", "operand_written_while_busy", "accumulator_of_20_bits", "model_unsigned")


def _found(plant: Plant, folder: Path, seconds: float) -> str | None:
    text = (HERE / f"{plant.file}.py").read_text(encoding="utf-8")
    assert text.count(plant.old) >= 1, plant.old
    file = folder / f"{plant.file}.py"
    file.write_text(text.replace(plant.old, plant.new, 1), encoding="utf-8")
    return verify(str(file), seconds=seconds).failure


@pytest.mark.parametrize("file", ["conv", "adder", pytest.param("dot", marks=pytest.mark.slow)])
def test_no_alarm_where_nothing_is_planted(file: str) -> None:
    verdict = verify(str(HERE / f"{file}.py"), examples=12, seconds=300)
    assert verdict.failure is None, verdict.test
    assert sum(verdict.accepted.values()) > 4


@pytest.mark.parametrize("plant", [p for p in PLANTS if p.name in QUICK], ids=lambda p: p.name)
def test_a_planted_bug_is_found(plant: Plant, tmp_path: Path) -> None:
    assert _found(plant, tmp_path, 20) is not None


@pytest.mark.slow
def test_nearly_all_planted_bugs_are_found(tmp_path: Path) -> None:
    missed = [f"{p.file}: {p.name}" for p in PLANTS if _found(p, tmp_path, 20) is None]
    print(f"{len(PLANTS) - len(missed)} of {len(PLANTS)} found; missed: {missed}")
    assert len(missed) <= 2, missed
