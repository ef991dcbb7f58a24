"""The model's graph on a run's page: a box for each layer, a line for each tensor between them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import msgspec

from covp.evaluation import build, run
from covp.evaluation.documents import Run
from covp.report.model_graph import ModelGraph, edges, lanes
from covp.report.run_labels import read_runs
from tests.plain import plain
from tests.report.conftest import Written


def test_every_layer_with_its_figures(kws: Run, document: dict[str, Any]) -> None:
    drawn = unescape(ModelGraph(kws).html())
    titles = re.findall("<title>(.*?)</title>", drawn)
    assert len(titles) == len(document["layers"]) == 12
    for title, layer in zip(titles, document["layers"], strict=True):
        assert title.startswith(f"{layer['index']} {layer['op']}, on {layer['target']}, ")
        assert f"{layer['cycles']:,} cycles" in title and f"{layer['live_bytes']:,} bytes" in title
    shares = [float(share) for share in re.findall(r">([\d.]+)%</text>", drawn)]
    between = 100 * document["between"]["cycles"] / document["cycles"]
    assert abs(sum(shares) + between - 100) < 0.05 * len(shares) + 0.01
    shades = [float(shade) for shade in re.findall('fill-opacity="([^"]*)"', drawn)]
    cycles = [layer["cycles"] for layer in document["layers"]]
    assert shades[cycles.index(max(cycles))] == max(shades) == 0.7
    assert drawn.count("stroke-dasharray") == sum(x["target"] != "cpu" for x in document["layers"])
    assert edges(kws.layers) == [(i, i + 1) for i in range(11)]


def test_a_residual_goes_beside(written: Written) -> None:
    """A network with additions: each takes two layers' tensors, and lanes keep lines apart."""
    made = plain(run(build("resnet", "riscv32"), check="none").record())
    layers = read_runs(written(made))[0].layers
    found = edges(layers)
    adds = [i for i, layer in enumerate(layers) if layer.op == "ADD"]
    assert adds and all(sum(end == i for _, end in found) == 2 for i in adds)
    bends = lanes(found)
    beside = [(edge, lane) for edge, lane in bends.items() if lane]
    assert beside
    for (a, b), lane in beside:
        for (c, d), other in beside:
            assert (a, b) == (c, d) or lane != other or b <= c or d <= a


def test_an_older_document_has_the_order_alone(kws: Run) -> None:
    layers = [msgspec.structs.replace(layer, inputs=None) for layer in kws.layers]
    older = msgspec.structs.replace(kws, layers=layers)
    assert edges(layers) == [(i, i + 1) for i in range(11)]
    assert "the order alone" in ModelGraph(older).html()
