"""`covp verify FILE` finds planted bugs, and takes nothing for one in the files without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.testing.verify import verify
from tests.testing.verify.planted.plant import Plant
from tests.testing.verify.planted.plants import PLANTS

HERE = Path(__file__).parent

QUICK = (
    "fixed_delay",
    "operand_written_while_busy",
    "model_unsigned",
    "stride_beyond_the_window",
    "average_counts_padding",
    "result_address_of_29_bits",
    "old_bytes_back",
    "word_at_0x80000000",
    "end_does_not_wait",
    "register_after_the_start",
    "bug_at_the_100th_call",
    "sixteenth_colour",
    "weights_kept_between_images",
)
FILES = [
    "conv",
    "adder",
    *(
        pytest.param(f, marks=pytest.mark.slow)
        for f in ("dot", "fused", "palette", "residual", "scratchpad")
    ),
]


def _found(plant: Plant, folder: Path) -> str | None:
    text = (HERE / f"{plant.file}.py").read_text(encoding="utf-8")
    assert text.count(plant.old) >= 1, plant.old
    file = folder / f"{plant.file}.py"
    file.write_text(text.replace(plant.old, plant.new, 1), encoding="utf-8")
    return verify(str(file), seconds=300, models=()).failure


@pytest.mark.costly
@pytest.mark.parametrize("file", FILES)
def test_no_alarm_where_nothing_is_planted(file: str) -> None:
    verdict = verify(str(HERE / f"{file}.py"), examples=12, seconds=300, models=())
    assert verdict.failure is None, verdict.test
    assert verdict.finished and sum(verdict.accepted.values()) > 4


@pytest.mark.costly
@pytest.mark.parametrize("plant", [p for p in PLANTS if p.name in QUICK], ids=lambda p: p.name)
def test_a_planted_bug_is_found(plant: Plant, tmp_path: Path) -> None:
    assert _found(plant, tmp_path) is not None


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted({plant.file for plant in PLANTS}))
def test_all_planted_bugs_of_a_file_are_found(file: str, tmp_path: Path) -> None:
    """The search has no end but that of its list, so that the verdict is the same everywhere."""
    own = [plant for plant in PLANTS if plant.file == file]
    missed = [plant.name for plant in own if _found(plant, tmp_path) is None]
    assert not missed
