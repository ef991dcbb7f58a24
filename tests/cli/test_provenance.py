"""Figures are printed with where they come from, whatever device they are of."""

import pytest

from covp.cli.provenance import cycles_column, model_note, run_time
from covp.device.stop import Source, Sources
from covp.runtime.profile import Profile

ESTIMATE = Source("estimated", "rv32", "zero wait states")
CALIBRATED = Source("estimated", "cv32e40p", "zero wait states", 0.003)
COUNTER = Source("measured", "DWT_CYCCNT")
RTL = Source("rtl", "cv32e40p")
CLOCK = Source("measured", "processor time of the process")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (ESTIMATE, "estimated 76.07 ms at 100 MHz (rv32 table, zero wait states, unchecked)"),
        (
            CALIBRATED,
            "estimated 76.07 ms at 100 MHz (cv32e40p table, zero wait states, error below 0.3%)",
        ),
        (COUNTER, "measured 76.07 ms at 100 MHz (DWT_CYCCNT)"),
        (RTL, "rtl 76.07 ms at 100 MHz (cv32e40p)"),
    ],
    ids=lambda value: value.kind if isinstance(value, Source) else "",
)
def test_time_of_counted_cycles(source: Source, text: str) -> None:
    profile = Profile("p", 10, 7_607_000, 100_000_000, sources=Sources(cycles=source))
    assert run_time(profile, 100_000_000) == text


def test_time_that_a_device_measured() -> None:
    profile = Profile("p", None, None, 10**9, measured=0.0012, sources=Sources(seconds=CLOCK))
    assert run_time(profile, 10**9) == "measured 1.20 ms (processor time of the process)"


def test_nothing_known_is_nothing_said() -> None:
    assert run_time(Profile("p", None, None, 10**9), 10**9) == ""


def test_columns_of_cycles() -> None:
    titles = [cycles_column(source) for source in (ESTIMATE, COUNTER, RTL, None)]
    assert titles == ["cycles (est.)", "cycles (measured)", "cycles (rtl)", "cycles"]


def test_only_synthetic_models_need_a_note() -> None:
    assert "SYNTHETIC" in model_note("synthetic")
    assert not any(map(model_note, ("official", "custom", "file", "memory")))
