"""The logger covp.passes: the passes that changed a graph, and no others."""

from __future__ import annotations

import logging

import pytest

from covp.graph.models import load_model
from covp.graph.passes import PASSES, run_passes
from covp.graph.passes.copy import copy_graph


def test_only_passes_that_change_the_graph_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    graph = load_model("vww")
    lowered, changing = copy_graph(graph), []
    for run in PASSES:
        before = str(lowered)
        run(lowered)
        changing += [run.__name__] * (str(lowered) != before)
    with caplog.at_level(logging.INFO, "covp.passes"):
        run_passes(graph)
    logged = [r.getMessage().split(": ")[1].removeprefix("pass ") for r in caplog.records]
    assert logged == changing and 0 < len(changing) < len(PASSES)
    caplog.clear()
    run_passes(graph)
    assert not caplog.records
