"""The logger covp.passes: the passes that changed a graph, and no others."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

import covp.graph.passes
from covp.graph.graph import Graph, copy_graph
from covp.graph.models import load_model
from covp.graph.passes import PASSES, run_passes
from tests.graph.passes.padded import padded


def content(graph: Graph) -> tuple[str, list[bytes]]:
    """The text of a graph and the bytes of its constants."""
    return str(graph), [t.data.tobytes() for t in graph.tensors() if t.data is not None]


def test_only_passes_that_change_the_graph_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    graph = padded()
    lowered, changing = copy_graph(graph), []
    for run in PASSES:
        before = content(lowered)
        run(lowered)
        changing += [run.__name__] * (content(lowered) != before)
    with caplog.at_level(logging.INFO, "covp.passes"):
        run_passes(graph)
    logged = [r.getMessage().split(": ")[1].removeprefix("pass ") for r in caplog.records]
    assert logged == changing and 0 < len(changing) < len(PASSES)
    caplog.clear()
    run_passes(graph)
    assert not caplog.records


def test_a_pass_that_changes_constants_alone_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def same_values(graph: Graph) -> None:
        """Put an equal array in the place of one, with a tensor around it."""
        old = next(tensor for tensor in graph.tensors() if tensor.constant)
        new = replace(old, data=np.array(old.data))
        for op in graph.ops:
            op.inputs = [new if tensor is old else tensor for tensor in op.inputs]

    def nothing(graph: Graph) -> None:
        """Leave all as it is."""

    monkeypatch.setattr(covp.graph.passes, "PASSES", (same_values, nothing))
    graph = load_model("toycar")
    with caplog.at_level(logging.INFO, "covp.passes"):
        run_passes(graph)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == "toycar: pass same_values: 10 -> 10 operators, 1 new constant"
