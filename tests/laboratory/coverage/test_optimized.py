"""How far lines of optimized code can be trusted: random functions against gcov at -O0."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import covp
from covp.laboratory.coverage import Coverage
from tests.laboratory.coverage.gcov import gcov
from tests.laboratory.coverage.programs import functions
from tests.laboratory.coverage.test_lines import PLATFORMS, needs_gcov, toolchains


def sample(count: int) -> list[str]:
    """The same functions in each run."""
    texts: list[str] = []

    @seed(1)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(functions())
    def keep(text: str) -> None:
        texts.append(text)

    keep()
    return [text for text in texts if text.count("\n") > 20]


@needs_gcov
@pytest.mark.slow
def test_lines(tmp_path: Path) -> None:
    """The figures of docs/coverage.md: `pytest -m slow -s` prints them."""
    draw, found = random.Random(1), Counter[str]()
    targets = [(platform, name) for platform in PLATFORMS for name in toolchains(platform)]
    sessions = [covp.Session(platform, toolchain=name) for platform, name in targets]
    for number, text in enumerate(sample(150)):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = folder / "unit.c"
        source.write_text(text)
        calls = [tuple(draw.randint(-3, 4) for _ in range(3)) for _ in range(4)]
        lines, _ = gcov(folder, source, calls)
        level = draw.choice(["-O1", "-O2", "-Os"])
        module = draw.choice(sessions).load_c(source, flags=(level, "-w"))
        with Coverage(module.session) as c:
            for call in calls:
                module["f"](*call).result()
        module.unload()
        for line, runs in c.lines(source).items():
            if line in lines:
                found[_kind(runs, lines[line])] += 1
    total = found.total()
    print({kind: f"{100 * count / total:.1f}%" for kind, count in found.items()}, total)
    assert total > 400
    assert found["same"] > 0.7 * total
    assert found["ran, shown as 0"] < 0.06 * total
    assert found["did not run, shown as run"] < 0.03 * total


def _kind(shown: int, ran: int) -> str:
    if shown == ran:
        return "same"
    if not shown:
        return "ran, shown as 0"
    return "did not run, shown as run" if not ran else "other count"
