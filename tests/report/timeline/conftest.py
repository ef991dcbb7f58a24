from __future__ import annotations

from collections.abc import Callable

import pytest

from covp.evaluation import Sample, Wanted, build, run
from covp.report.timeline import timeline_of, write_trace
from tests.report.timeline.runs import Traced


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Traced]:
    """traced(model, platform, *accelerators): a run without a timeline, one with, and its file."""
    known: dict[tuple[str, ...], Traced] = {}

    def make(*names: str) -> Traced:
        if names not in known:
            model, platform, *accelerators = names
            made = build(model, platform, accelerators)
            sample = Sample.random(made.graph)
            plain = run(made, sample, check="output", wanted=Wanted(functions=True))
            found = run(made, sample, check="output", wanted=Wanted(timeline=True))
            path = tmp_path_factory.mktemp("timeline") / "trace.json"
            write_trace(path, timeline_of(found))
            known[names] = Traced(plain, found, path)
        return known[names]

    return make
