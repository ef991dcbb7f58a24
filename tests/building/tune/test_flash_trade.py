"""`speed` with a sense of proportion: how much flash a saved instruction may cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.base.request import FLASH_TRADE, BuildOptions
from covp.building.tune.records import VERSION, Records, ScheduleTrial, best_of


def trial(
    name: str, instructions: int | None, flash: int, nanoseconds: int | None = None
) -> ScheduleTrial:
    return ScheduleTrial(
        "layer", "rv32imc", "zig 1", VERSION, name, instructions, instructions, flash, 0, True,
        nanoseconds=nanoseconds,
    )  # fmt: skip


def best(trials: list[ScheduleTrial], flash_trade: int | None = FLASH_TRADE) -> str:
    found = best_of(trials, BuildOptions(flash_trade=flash_trade))
    assert found is not None
    return found.schedule


def test_a_few_instructions_are_not_worth_a_third_more_flash() -> None:
    """37 % more flash for 0.06 % fewer instructions of kws, 4,400 bytes a thousand, were paid."""
    slim, fast = trial("slim", 6_871_000, 48_500), trial("fast", 6_867_000, 66_500)
    assert best([slim, fast], 4000) == "slim"
    assert best([slim, fast], 4600) == best([slim, fast], None) == "fast"
    assert best([slim, trial("fatter", 6_867_000, 69_000)]) == "slim"


def test_what_is_worth_it_is_paid() -> None:
    slim, fast = trial("slim", 200_000, 1_000), trial("fast", 100_000, 400_000)
    assert best([slim, fast]) == "fast"


def test_the_trade_is_about_differences_not_sizes() -> None:
    """A large layer is not kept slow because it is large."""
    pairs = [(base, base + 900) for base in (100, 10_000, 1_000_000)]
    for slim, fat in pairs:
        assert best([trial("slim", 10_200, slim), trial("fast", 10_000, fat)], 5000) == "fast"
        assert best([trial("slim", 10_200, slim), trial("fast", 10_000, fat)], 4000) == "slim"


def test_run_time_is_not_traded() -> None:
    slim, fast = trial("slim", None, 100, 1001), trial("fast", None, 10_000, 1000)
    assert best([slim, fast]) == "fast"


@pytest.mark.parametrize("core", ["rv32imc", "cortex-m4f", "cortex-m7f", "cortex-m0plus"])
def test_the_default_keeps_the_speed_of_the_shipped_models(core: str, tmp_path: Path) -> None:
    records = Records.available()
    layers = [
        records.trials(layer, where, compiler)
        for layer, where, compiler in records.layers()
        if (where, compiler) == (core, "zig 0.17.0")
    ]
    assert len(layers) > 70

    def total(flash_trade: int | None) -> int:
        chosen = [best_of(trials, BuildOptions(flash_trade=flash_trade)) for trials in layers]
        return sum(trial.cycles or 0 for trial in chosen if trial is not None)

    assert total(None) <= total(FLASH_TRADE) <= 1.005 * total(None)
