"""Several runs side by side: what differs names them, and speeds compare runs of one model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covp.evaluation.documents import Run
from covp.report.figures.comparison import first_cycles
from covp.report.quantities import bound
from covp.report.run_labels import labels


@pytest.fixture
def runs(kws: Run) -> list[Run]:
    """Two models on two platforms, with a unit and without."""
    replace = msgspec.structs.replace
    return [
        replace(kws, model=model, platform=platform, accelerators=units, cycles=cycles)
        for cycles, (model, platform, units) in enumerate(
            [("kws", "a", []), ("kws", "a", ["gemm"]), ("vww", "a", ["gemm"])], 1
        )
    ]


def test_names_say_what_differs(runs: list[Run]) -> None:
    files = [Path(f"{name}.json") for name in "abc"]
    assert labels(runs, files, ()) == ["kws, core alone", "kws, gemm", "vww, gemm"]
    assert labels(runs[1:], files[1:], ()) == ["kws", "vww"]
    assert labels(runs[:1], files[:1], ()) == [runs[0].title]
    assert labels([runs[0], runs[0]], files[:2], ()) == [f"{n}: {runs[0].title}" for n in "ab"]


def test_a_model_that_ran_once_is_compared_with_nothing(runs: list[Run]) -> None:
    named = [(run.title, run) for run in runs]
    assert first_cycles(named) == {"kws": 1}
    assert first_cycles(named[1:]) == {}


def test_causes_say_what_limits_a_layer(kws: Run) -> None:
    """A layer left of the ridge whose cycles are instructions is not limited by memory."""
    layer = next(one for one in kws.layers if one.target == "cpu" and one.cycles_by_cause)
    assert layer.cycles
    replace = msgspec.structs.replace
    for cause, expected in (("issue", "compute"), ("operand", "compute"), ("cache", "memory"),
                            ("fetch", "memory"), ("data", "memory")):  # fmt: skip
        of_one = replace(layer, cycles_by_cause={cause: layer.cycles}, macs=1)
        assert bound(kws, of_one) == expected, cause
