"""Fronts under constraints: an unknown figure breaks none, and an empty front is explained."""

from __future__ import annotations

import pytest

from covp.cli.sweep import print_result
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.result import SweepResult

NAMES = ("qconv2d", "gemm", "vector")


def result(*constraints: str, areas: tuple[float | None, ...], copies: int = 1) -> SweepResult:
    """Of three accelerators, the first one the fastest."""
    rows = [
        Row(key=f"{name}{copy}", model="kws", platform="riscv32", accelerators=(name,),
            seconds=(number + 1) * 1e-3, cycles=1000 * (number + 1), area_um2=area)
        for copy in range(copies)
        for number, (name, area) in enumerate(zip(NAMES, areas, strict=True))
    ]  # fmt: skip
    wanted = {"models": ["kws"], "platforms": ["riscv32"], "constraints": list(constraints)}
    return SweepResult(make_spec({**wanted, "search": {"objectives": ["seconds"]}}), tuple(rows))


def test_what_is_not_known_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    found = result("area_um2 <= 300", areas=(None, 250.0, 900.0))
    assert [row.accelerators for row in found.feasible] == [("qconv2d",), ("gemm",)]
    assert [row.accelerators for row in found.front] == [("qconv2d",)]
    assert [point.feasible for point in found.record().points] == [None, True, False]
    print_result(found)
    out = capsys.readouterr().out
    assert "1 keep all constraints: area_um2 <= 300" in out
    assert "1 break none, but area_um2 is not known of them" in out


@pytest.mark.parametrize(
    "constraints, areas, reason",
    [
        (("area_um2 <= 100",), (400.0, 200.0, 300.0),
         "no front: every design breaks a constraint; the nearest one has area_um2 of 200.0"),
        (("area_um2 <= 100", "cycles < 10"), (400.0, 200.0, 300.0),
         "the nearest one has area_um2 of 400.0 and cycles of 1,000"),
    ],
)  # fmt: skip
def test_an_empty_front_is_explained(
    constraints: tuple[str, ...],
    areas: tuple[float, ...],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_result(result(*constraints, areas=areas, copies=20))
    assert reason in capsys.readouterr().out
