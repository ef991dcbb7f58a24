"""Random networks, in random bands and in random orders, with slow units and fast ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.base.request import BuildOptions
from covp.building.list_schedule import PartCost, Units, simulate
from covp.building.part_costs import tasks_of
from covp.chip.platform_file import load_platform
from covp.codegen.bands import can_be_cut
from covp.codegen.generate import generate
from covp.codegen.overlap import Action, OverlapPlan, shared_units
from covp.codegen.program import LayerPart, Piece, Program, ProgramLayer
from covp.errors import CovpError
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import ReferenceExecutor, run_reference
from covp.runtime.session import Session
from tests.codegen.fuzz.graphs import random_graph

from .graphs import Network, chain

UNUSED = BuildOptions(allow_unused=True)
SLOW = ["gemm:startup_cycles=20000", "vector:startup_cycles=3000"]
FAST = ["gemm:startup_cycles=0,size=64,bytes_per_cycle=64", "qconv2d:wait=sleep,startup_cycles=7"]
EQUAL = ["gemm:startup_cycles=900", "gemm:startup_cycles=900", "gemm:startup_cycles=900"]
EQUAL_REQUANTIZED = ["qconv2d:requantize=false", "vector", "qconv2d:requantize=false"]
"""The core requantizes in working memory, of which each unit needs its own."""
UNITS = [SLOW, FAST, EQUAL, EQUAL_REQUANTIZED]
PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]


@pytest.mark.process
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 7])
def test_outputs_are_the_references(seed: int) -> None:
    holds(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 6, *range(8, 150)])
def test_outputs_of_many_are_the_references(seed: int) -> None:
    holds(seed)


def holds(seed: int) -> None:
    random, graph = np.random.default_rng(seed), random_graph(seed)
    platform = load_platform(PLATFORMS[seed % len(PLATFORMS)])
    units = UNITS[seed % len(UNITS)]
    rows = _random_rows(graph, units, platform.name, random)
    before = generate(graph, platform, units, UNUSED, plan=OverlapPlan(rows))
    actions = _random_order(before, random)
    plan = OverlapPlan(rows, actions, shared_units(before.layers, actions))
    program = generate(graph, platform, units, UNUSED, plan=plan)
    began = Counter(action.unit for action in actions if action.what == "begin")
    for name, jobs in began.items():
        assert sum(_parts_on(layer, name) for layer in program.layers) == jobs
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
    lowered = generate(graph, platform, units, UNUSED).lowered
    assert lowered is not None
    rows: dict[str, int] = {}
    for op in lowered.ops:
        if can_be_cut(op):
            more = {**rows, op.name: int(random.integers(1, op.output.shape[1] + 1))}
            try:
                generate(graph, platform, units, UNUSED, plan=OverlapPlan(more))
            except CovpError:
                continue
            rows = more
    return rows


def _random_order(program: Program, random: np.random.Generator) -> tuple[Action, ...]:
    layers = program.layers
    costs = [
        [
            PartCost(*random.exponential([10, 1000 if part.is_asynchronous else 0, 1, 5]))
            for part in own
        ]
        for own in (layer.parts for layer in layers)
    ]
    tasks = tasks_of([layer.parts for layer in layers], [layer.target for layer in layers], costs)
    names = [unit.name for unit in program.accelerators]
    equal = {
        first: [name for name in names if name.removesuffix("_2").removesuffix("_3") == first]
        for first in names
    }
    return simulate(tasks, list(random.random(len(tasks))), Units(equal)).actions


def _parts_on(layer: ProgramLayer, name: str) -> int:
    """Return how many parts of a layer a unit computes while the core may go on."""
    own = [part.unit or layer.target for part in layer.parts if part.is_asynchronous]
    return own.count(name)


@pytest.mark.process
@pytest.mark.parametrize("seed", range(4))
def test_states_are_kept(seed: int) -> None:
    """What a state becomes may be written over it, but not while a unit still reads it."""
    net, random = Network("stateful", seed), np.random.default_rng(seed)
    x = net.input((1, 8, 8, 8), scale=0.05, zero_point=-4)
    before = net.state("memory", random.integers(-128, 128, (1, 8, 8, 8)).astype(np.int8), 0.1, 5)
    read, after = net.conv(before, 8, 3), net.depthwise(x)
    net.becomes(before, after)
    graph = net.graph(net.sum(read, net.conv(after, 8, 1)))
    platform = load_platform(PLATFORMS[seed % 2])
    rows = {"depthwise_conv_2d_1": 3, "conv_2d_0": 4} if seed > 1 else {}

    def made(actions: tuple[Action, ...]) -> Program:
        return generate(graph, platform, SLOW[:1], plan=OverlapPlan(rows, actions))

    actions = _random_order(made(()), random)
    program, reference = made(actions), ReferenceExecutor(graph)
    check_order(program, actions)
    with Session(platform) as session:
        module = session.load(program)
        for number in range(3):
            inputs = random_inputs(graph.inputs, number)
            assert np.array_equal(module.run(*inputs), reference.run(*inputs)[0])


def test_a_plan_for_another_order_is_found() -> None:
    """That the walk finds what is wrong: memory of one order and calls of another, no operands."""
    graph, unit = chain(columns=8), ["gemm"]
    rows = {op.name: 3 for op in graph.ops}

    def made(actions: tuple[Action, ...]) -> Program:
        return generate(graph, "riscv32", unit, plan=OverlapPlan(rows, actions))

    waits_at_once = made(())
    order = _random_order(waits_at_once, np.random.default_rng(1))
    check_order(made(order), order)
    with pytest.raises(AssertionError):
        check_order(waits_at_once, order)
    last_first = [*order[-1:], *order[:-1]]
    with pytest.raises(AssertionError):
        check_order(made(order), last_first)


class Memory:
    """What the arena's bytes hold: a tensor's byte, as a number, or nothing (0)."""

    def __init__(self, program: Program) -> None:
        self.bytes = np.zeros(program.arena_bytes, np.int64)
        self.places = {t.name: t.offset for t in program.inputs}
        self.places |= {s.tensor.name: s.tensor.offset for s in program.states}
        self.kept = set(self.places)
        for layer in program.layers:
            for piece in layer.memory:
                if piece.is_written:
                    self.places.setdefault(piece.name, piece.offset)
        self.numbers = {name: 1 + number for number, name in enumerate(self.places)}
        for tensor in (*program.inputs, *(state.tensor for state in program.states)):
            self.write(Piece(tensor.name, 0, tensor.nbytes))

    def place(self, piece: Piece) -> slice:
        start = self.places[piece.tensor]
        return slice(start + piece.start, start + piece.end)

    def content(self, piece: Piece) -> NDArray[np.int64]:
        return (self.numbers[piece.tensor] << 32) + np.arange(piece.start, piece.end)

    def write(self, piece: Piece) -> None:
        self.bytes[self.place(piece)] = self.content(piece)

    def holds(self, piece: Piece) -> bool:
        return np.array_equal(self.bytes[self.place(piece)], self.content(piece))


def check_order(program: Program, actions: Sequence[Action]) -> None:
    """Byte by byte: what is read is there, and stays there until a unit is over.

    The model of a unit takes its operands when it starts; hardware may take them until its end.
    """
    memory, done = Memory(program), set()
    running: dict[str, LayerPart] = {}
    for action in actions:
        layer = program.layers[action.layer]
        part = layer.parts[action.part]
        if action.what == "end":
            assert running.pop(part.unit or layer.target) == part
        else:
            assert all(memory.holds(piece) for piece in part.reads), layer.name
            assert part.unit or layer.target not in running
        if action.what == "begin":
            running[part.unit or layer.target] = part
        else:
            done.add((action.layer, action.part))
            for piece in part.writes:
                memory.write(piece)
        scratch = [
            slice(m.offset, m.offset + m.nbytes)
            for m in layer.memory
            if m.is_written and not any(m.name == output.name for output in layer.outputs)
        ]
        for place in scratch:
            memory.bytes[place] = 0
        for other in running.values():
            assert all(memory.holds(piece) for piece in other.reads), layer.name
            if other is not part:
                taken = [memory.place(piece) for piece in other.writes]
                own = [*map(memory.place, (*part.reads, *part.writes)), *scratch]
                assert not any(a.start < b.stop and b.start < a.stop for a in taken for b in own)
    assert len(done) == sum(len(layer.parts) for layer in program.layers) and not running
    for tensor in program.outputs:
        if tensor.name in memory.places and memory.places[tensor.name] == tensor.offset:
            assert memory.holds(Piece(tensor.name, 0, tensor.nbytes)), tensor.name
