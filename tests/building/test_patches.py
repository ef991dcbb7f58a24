"""`--patches`: smaller arenas, the same results."""

from __future__ import annotations

import pytest

import covp
from covp.building.builder import build
from covp.errors import UsageError
from covp.evaluation import run

MOST_INSTRUCTIONS = 1.08


@pytest.mark.costly
def test_vww_needs_less_memory() -> None:
    plain, made = (build("vww", "stm32l4r5", patches=patches) for patches in ("", "auto"))
    assert made.program.arena_bytes <= 41_000 < plain.program.arena_bytes
    before, result = run(plain), run(made)
    assert result.matches_reference
    assert result.profile.instructions and before.profile.instructions
    assert result.profile.instructions <= MOST_INSTRUCTIONS * before.profile.instructions
    (note,) = made.program.warnings
    assert f"arena {made.program.arena_bytes:,} instead of {plain.program.arena_bytes:,} B" in note
    stated = [sum(layer.macs for layer in each.program.layers) for each in (plain, made)]
    assert stated[0] == stated[1]


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
def test_strips_are_bit_exact_on_cores(platform: str) -> None:
    result = run(build("resnet", platform, patches="8"))
    assert result.matches_reference
    assert "patches: 8 strips" in result.warnings[0]


def test_nothing_to_gain_changes_nothing() -> None:
    plain, made = (covp.compile("toycar", "riscv32", patches=each) for each in ("", "auto"))
    assert (plain.arena_bytes, plain.sources) == (made.arena_bytes, made.sources)
    assert made.warnings[-1].startswith("patches: none")


@pytest.mark.parametrize("patches", ["1", "many", "-3", "2.5"])
def test_a_wrong_number_is_refused(patches: str) -> None:
    with pytest.raises(UsageError, match="neither auto nor a number"):
        covp.compile("toycar", "riscv32", patches=patches)


@pytest.mark.costly
def test_accelerators_are_refused() -> None:
    with pytest.raises(UsageError, match="core alone"):
        covp.compile("resnet", "riscv32", ["gemm"], patches="auto")
