"""Node data for Model Explorer: as its node_data_builder.py describes it, with the run's cycles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec

from covp.cli.main import main
from covp.evaluation.documents import Run
from covp.report.model_graph import node_data
from tests.report.conftest import Written


class NodeDataResult(msgspec.Struct, forbid_unknown_fields=True):
    value: float | str
    bgColor: str | None = None
    textColor: str | None = None


class ThresholdItem(msgspec.Struct, forbid_unknown_fields=True):
    value: float
    bgColor: str
    textColor: str | None = None


class GradientItem(msgspec.Struct, forbid_unknown_fields=True):
    stop: float
    bgColor: str | None = None
    textColor: str | None = None


class GraphNodeData(msgspec.Struct, forbid_unknown_fields=True):
    results: dict[str, NodeDataResult]
    name: str | None = None
    thresholds: list[ThresholdItem] = []
    gradient: list[GradientItem] = []
    hideInAggregatedStatsTable: bool = False
    hideInChildrenStatsTable: bool = False
    hideAggregatedStats: list[Literal["min", "max", "sum", "avg"]] | None = None
    showExpandedSummaryOnGroupNode: bool = False
    showLabelCountColumnsInChildrenStatsTable: bool = False


def test_the_files(tmp_path: Path, document: dict[str, Any], written: Written) -> None:
    """Every layer by its output's name; cycles add up to the run's with those between layers."""
    path = tmp_path / "nodes.json"
    try:
        main(["report", str(written(document)), "--model-explorer", str(path)])
    except SystemExit as done:
        assert done.code == 0
    files = [path, tmp_path / "nodes-share.json", tmp_path / "nodes-placement.json"]
    cycles, share, placed = (
        msgspec.json.decode(file.read_bytes(), type=GraphNodeData) for file in files
    )
    layers = document["layers"]
    assert {n: r.value for n, r in cycles.results.items()} == {
        layer["tensor"]: layer["cycles"] for layer in layers
    }
    between = document["between"]["cycles"]
    assert sum(layer["cycles"] for layer in layers) + between == document["cycles"]
    total = sum(float(r.value) for r in share.results.values()) + 100 * between / document["cycles"]
    assert abs(total - 100) < 0.01
    assert {n: r.value for n, r in placed.results.items()} == {
        layer["tensor"]: layer["target"] for layer in layers
    }
    assert len({r.bgColor for r in placed.results.values()}) == 2, "core and unit"
    assert [item.stop for item in cycles.gradient] == [0, 1]
    assert cycles.name == "cycles (estimated, ±\u00a010.3\u00a0%)"
    assert not list(tmp_path.glob("*.html")), "a page is made where it is asked for"


def test_without_cycles(kws: Run) -> None:
    """The placement alone."""
    assert list(node_data(msgspec.structs.replace(kws, cycles=None))) == ["placement"]


def test_it_is_of_one_run(document: dict[str, Any], written: Written) -> None:
    file = str(written(json.loads(json.dumps(document))))
    try:
        main(["report", file, file, "--model-explorer", "x.json"])
    except SystemExit as done:
        assert done.code == 2
