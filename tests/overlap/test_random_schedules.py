"""Random networks, in random bands and in random orders, with slow units and fast ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from covp.codegen.bands import can_be_cut
from covp.codegen.compile import compile as generate
from covp.codegen.overlap import Action, OverlapPlan
from covp.errors import CovpError
from covp.evaluation.list_schedule import Cost, simulate
from covp.evaluation.part_costs import tasks_of
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.platform_file import load_platform
from covp.program import Program
from covp.runtime.session import Session
from tests.fuzz.graphs import random_graph

SLOW = ["gemm:startup_cycles=20000", "vector:startup_cycles=3000"]
FAST = ["gemm:startup_cycles=0,size=64,bytes_per_cycle=64", "qconv2d:wait=sleep,startup_cycles=7"]
PLATFORMS = ["stm32l4r5", "riscv32", "cortex-m0plus"]


@pytest.mark.parametrize("seed", range(8))
def test_outputs_are_the_references(seed: int) -> None:
    holds(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 150))
def test_outputs_of_many_are_the_references(seed: int) -> None:
    holds(seed)


def holds(seed: int) -> None:
    random, graph = np.random.default_rng(seed), random_graph(seed)
    platform = load_platform(PLATFORMS[seed % len(PLATFORMS)])
    units = (SLOW, FAST)[seed % 2]
    rows = _random_rows(graph, units, platform.name, random)

    def made(actions: tuple[Action, ...]) -> Program:
        plan = OverlapPlan(rows, actions)
        return generate(graph, platform, units, allow_unused=True, overlap=plan)

    actions = _random_order(made(()), random)
    program = made(actions)
    check_order(program, actions)
    with Session(platform) as session:
        module = session.load(program)
        for number in range(2):  # the second one finds an arena full of other values
            inputs = random_inputs(graph.inputs, seed + number)
            found = module.run(*inputs)
            expected = run_reference(graph, inputs)
            for got, wanted in zip(
                found if isinstance(found, list) else [found], expected, strict=True
            ):
                assert not differences(got, wanted).size


def _random_rows(
    graph: Graph, units: Sequence[str], platform: str, random: np.random.Generator
) -> Mapping[str, int]:
    """Of each layer that can be cut, and that its unit accepts in bands."""
    lowered = generate(graph, platform, units, allow_unused=True).lowered
    assert lowered is not None
    rows: dict[str, int] = {}
    for op in lowered.ops:
        if can_be_cut(op):
            more = {**rows, op.name: int(random.integers(1, op.output.shape[1] + 1))}
            try:
                generate(graph, platform, units, allow_unused=True, overlap=OverlapPlan(more))
            except CovpError:
                continue
            rows = more
    return rows


def _random_order(program: Program, random: np.random.Generator) -> tuple[Action, ...]:
    layers = program.layers
    costs = [
        [Cost(*random.exponential([10, 1000 if part.is_asynchronous else 0, 1, 5])) for part in own]
        for own in (layer.parts for layer in layers)
    ]
    tasks = tasks_of([layer.parts for layer in layers], [layer.target for layer in layers], costs)
    return simulate(tasks, list(random.random(len(tasks)))).actions


def check_order(program: Program, actions: Sequence[Action]) -> None:
    """Byte by byte: what is read was written before; a unit has one job at a time."""
    present: dict[str, set[int]] = {}
    written = {p.tensor for layer in program.layers for part in layer.parts for p in part.writes}
    busy: dict[str, Action] = {}
    done = set()
    for action in actions:
        layer = program.layers[action.layer]
        part = layer.parts[action.part]
        if action.what == "end":
            assert busy.pop(layer.target) == Action(action.layer, action.part, "begin")
        else:
            for piece in part.reads:
                if piece.tensor in written:
                    there = present.get(piece.tensor, set())
                    assert there >= set(range(piece.start, piece.end)), layer.name
        if action.what == "begin":
            assert layer.target not in busy
            busy[layer.target] = action
        else:
            done.add((action.layer, action.part))
            for piece in part.writes:
                present.setdefault(piece.tensor, set()).update(range(piece.start, piece.end))
    assert len(done) == sum(len(layer.parts) for layer in program.layers) and not busy
