"""The partitioner's choice by cost: operand orders, fused or apart, unit or core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp
from covp.accelerator import Requantize
from covp.accelerator.backend import DRIVER_CYCLES, AcceleratorBackend
from covp.accelerator.partition import Partition, partition
from covp.accelerator.registry import find_backend, find_backends
from covp.base.request import EVERY_MATCH
from covp.codegen.offload import demand_use, split_graph
from covp.errors import AcceleratorError, UsageError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.models import load_model
from covp.graph.ops import definition
from covp.graph.passes import run_passes
from covp.graph.pattern import Match, Pattern, constant, conv2d, op, wildcard

CONV = conv2d(wildcard("input"), constant("weights"))
FUSED = Pattern("conv_add", op("ADD", CONV, wildcard("skip")))


class Costs:
    """A core with a price for each multiply-accumulate and each result of an operator."""

    def operators(self, graph: Graph) -> dict[Op, int | None]:
        return {op: None if op.kind == "UNKNOWN" else self.price(op) for op in graph.ops}

    def price(self, op: Op) -> int:
        return 2 * definition(op.kind).macs(op) + PRICES.get(op.kind, 20) * op.output.size

    def requantizations(self, steps: Sequence[Requantize]) -> list[int | None]:
        return [10 * step.output.size for step in steps]


PRICES = {"RELU": 3, "TANH": 3, "ADD": 15}
COSTS = Costs()
Cost = Callable[[Match], int | None]


def unit(
    label: str,
    cost: Cost,
    *found: Pattern,
    accepts: Callable[[Match], bool | str] = lambda match: True,
) -> AcceleratorBackend:
    """A backend whose matches take ``cost(match)`` cycles, the driver's included."""

    class Named(AcceleratorBackend):
        name = label
        patterns = found
        peripheral = "nowhere:Nothing"

        def supports(self, match: Match) -> bool | str:
            return accepts(match)

        def estimate(self, match: Match) -> int | None:
            cycles = cost(match)
            return None if cycles is None else cycles - DRIVER_CYCLES

        def lower(self, match: Match):
            return []

        def driver(self, base: int) -> dict[str, str]:
            return {}

    return Named()


def macs(match: Match) -> int:
    return sum(definition(member.kind).macs(member) for member in match.ops)


@pytest.fixture(scope="module")
def resnet() -> Graph:
    return run_passes(covp.load_model("resnet"))


def fused_kernels(split: Partition) -> list[int]:
    return [p.ops[0].input(1).shape[1] for p in split.placements if len(p.ops) > 1]


def test_the_3x3_convolution_is_fused_and_not_the_1x1_of_the_skip(resnet: Graph) -> None:
    """Both orders of ADD's operands are tried, and the one that saves more is taken."""
    for cost in (lambda match: 1000 + macs(match) // 64, lambda match: None):
        split = partition(resnet, [unit("fuser", cost, FUSED)], COSTS)
        assert fused_kernels(split) == [3, 3, 3]


def test_where_one_order_of_operands_is_rejected_the_other_is_taken(resnet: Graph) -> None:
    def small(match: Match) -> bool | str:
        return match.ops[0].input(1).shape[1] == 1 or "kernel too large"

    split = partition(resnet, [unit("fuser", macs, FUSED, accepts=small)], COSTS)
    assert fused_kernels(split) == [1, 1]
    # the block without a 1x1 convolution: only the 3x3 was there to fuse
    assert {r.reason for r in split.reasons("fuser") if r.matched} == {"kernel too large"}


def test_two_units_apart_beat_a_slow_fused_one_that_was_named_first(resnet: Graph) -> None:
    gemm, vector = find_backend("gemm"), find_backend("vector")
    slow = unit("slow", lambda match: 1000 + macs(match) // 4, FUSED)
    fast = unit("fast", lambda match: 100, FUSED)
    apart = partition(resnet, [gemm, vector], COSTS)
    with_slow = partition(resnet, [slow, gemm, vector], COSTS)
    assert [p.target for p in with_slow.placements] == [p.target for p in apart.placements]
    with_fast = partition(resnet, [gemm, vector, fast], COSTS)
    assert [p.target for p in with_fast.placements].count("fast") == 3
    costs = [sum(p.cycles or 0 for p in s.placements) for s in (with_fast, apart, with_slow)]
    assert costs[0] < costs[1] == costs[2]


def test_a_unit_without_an_estimate_does_not_keep_the_others_from_being_compared() -> None:
    graph = relus([1000])
    dear = unit("dear", lambda match: 900, PATTERNS[0])
    cheap = unit("cheap", lambda match: 90, PATTERNS[0])
    silent = unit("silent", lambda m: None, PATTERNS[0])
    for named, target in (
        ((dear, silent, cheap), "cheap"),
        ((silent, dear, cheap), "silent"),
        ((silent, cheap), "silent"),
        ((cheap, silent), "cheap"),
    ):
        split = partition(graph, named, COSTS)
        assert split.placements[0].target == target
    assert split.refusals[0].reason == "cheap accepts it, and silent has no estimate"


KINDS = ("RELU", "TANH", "ADD")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to six operators, each of one or two earlier values."""
    made = [Tensor("x", (1, draw(st.integers(1, 40))), np.dtype(np.int8))]
    ops = []
    for index in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(KINDS))
        inputs: list[Tensor | None] = [
            draw(st.sampled_from(made)) for _ in range(2 if kind == "ADD" else 1)
        ]
        result = Tensor(f"t{index}", made[0].shape, made[0].dtype)
        ops.append(Op(kind, f"op_{index}", inputs, [result], index=index))
        made.append(result)
    return Graph("drawn", made[:1], made[-1:], ops)


PATTERNS = (
    Pattern("relu", op("RELU", wildcard())),
    Pattern("tanh", op("TANH", wildcard())),
    Pattern("add", op("ADD")),
    Pattern("add_relu", op("ADD", op("RELU", wildcard()), wildcard())),
    Pattern("add_tanh_relu", op("ADD", op("TANH", wildcard()), op("RELU", wildcard()))),
    Pattern("relu_tanh", op("RELU", op("TANH", wildcard()))),
    Pattern("three", op("RELU", op("ADD", op("TANH", wildcard()), wildcard()))),
)


@settings(max_examples=150, deadline=None)
@given(st.data(), graphs())
def test_no_cover_of_a_random_graph_is_cheaper(data: st.DataObject, graph: Graph) -> None:
    prices: dict[tuple[str, ...], int] = {}

    def cost(name: str) -> Cost:
        def price(match: Match) -> int:
            key = (name, match.name, *(member.name for member in match.ops))
            if key not in prices:
                prices[key] = data.draw(st.integers(DRIVER_CYCLES, 400), label=str(key))
            return prices[key]

        return price

    backends = []
    for name in ("a", "b"):
        own = data.draw(st.lists(st.sampled_from(PATTERNS), min_size=1, unique=True))
        backends.append(unit(name, cost(name), *own))
    split = partition(graph, backends, COSTS, EVERY_MATCH)
    assert [op for op in graph.ops if not any(op in p.ops for p in split.placements)] == []
    known: dict[tuple[Op, ...], int] = {
        (op,): cycles or 0 for op, cycles in COSTS.operators(graph).items()
    }
    spent = [known[p.ops] if p.backend is None else p.cycles or 0 for p in split.placements]
    assert sum(spent) == min(all_costs(graph, prices))


def all_costs(graph: Graph, prices: dict[tuple[str, ...], int]) -> Iterator[int]:
    """Of every cover that leaves no accepted match to the core alone."""
    core = {op.name: cycles or 0 for op, cycles in COSTS.operators(graph).items()}
    matches = [(set(key[2:]), price) for key, price in prices.items()]
    for size in range(min(len(matches), len(graph.ops)) + 1):
        for picked in combinations(matches, size):
            taken = set().union(*(names for names, _ in picked))
            disjoint = len(taken) == sum(len(names) for names, _ in picked)
            if disjoint and all(names & taken for names, _ in matches):
                left = sum(cycles for name, cycles in core.items() if name not in taken)
                yield left + sum(price for _, price in picked)


def relus(sizes: Sequence[int]) -> Graph:
    """RELUs beside each other, of as many elements."""
    inputs = [Tensor(f"x{i}", (1, n), np.dtype(np.int8)) for i, n in enumerate(sizes)]
    outputs = [Tensor(f"y{i}", (1, n), np.dtype(np.int8)) for i, n in enumerate(sizes)]
    ops = [
        Op("RELU", f"relu_{i}", [x], [y], index=i)
        for i, (x, y) in enumerate(zip(inputs, outputs, strict=True))
    ]
    return Graph("relus", inputs, outputs, ops)


def test_a_layer_that_the_core_does_a_cycle_faster_is_left_to_it_with_a_warning() -> None:
    graph = relus([1001, 1000, 999])
    slow = unit("slow", lambda match: 3000, PATTERNS[0])
    split = partition(graph, [slow], COSTS)
    # as fast: what is named is used
    assert [p.target for p in split.placements] == ["slow", "slow", "cpu"]
    (left,) = split.warnings
    assert (
        "slow: 1 layer left to the core" in left and "relu_2: about 3,000 cycles for 2,997" in left
    )
    assert "--allow-slower" in left
    assert "the core needs fewer cycles" in split.reasons("slow")[0].reason
    everything = partition(graph, [slow], COSTS, EVERY_MATCH)
    assert [p.target for p in everything.placements] == ["slow"] * 3
    assert "slow: 1 layer, slower on it" in everything.warnings[0]


def test_an_accelerator_that_is_slower_everywhere_is_used_only_where_that_is_allowed() -> None:
    slow = unit("slow", lambda match: 10**6, PATTERNS[0])
    _, split = split_graph(relus([10, 20]), [slow], COSTS)
    with pytest.raises(
        UsageError, match=r"gets no layer .* 30 for about 1,000,000; --allow-slower"
    ):
        demand_use(split, [slow])
    split = partition(relus([10, 20]), [slow], COSTS, EVERY_MATCH)
    assert [p.target for p in split.placements] == ["slow", "slow"]
    (warning,) = split.warnings
    assert "slow: 2 layers, slower" in warning and "1,000,000" in warning


def test_an_operator_of_unknown_cost_on_the_core_is_not_left_there() -> None:
    graph = relus([10])
    graph.ops[0].kind = "UNKNOWN"
    any_kind = Pattern("made", op("UNKNOWN"))
    split = partition(graph, [unit("slow", lambda match: 10**9, any_kind)], COSTS)
    assert split.placements[0].target == "slow"
    assert split.warnings == ()


def test_where_another_accelerator_won_all_layers_that_is_the_reason() -> None:
    graph = relus([100, 100])
    fast = unit("fast", lambda match: 70, PATTERNS[0])
    slow = unit("slow", lambda match: 80, PATTERNS[0])
    _, split = split_graph(graph, [slow, fast], COSTS)
    with pytest.raises(UsageError, match=r"'slow' gets no layer .* fast needs fewer cycles, about"):
        demand_use(split, [slow, fast])


def test_alternatives_name_every_way_with_its_cycles(resnet: Graph) -> None:
    fuser = unit("fuser", lambda match: 5000, FUSED)
    split = partition(resnet, [fuser, find_backend("gemm")], COSTS)
    last = split.placements[-1].ops[-1].name
    fused = [a for a in split.alternatives if a.target == "fuser"]
    # two blocks have a convolution on either side of the ADD
    assert len(fused) == 5 and sum(a.chosen for a in fused) == 3
    assert {a.target for a in split.alternatives} == {"fuser", "gemm", "cpu"}
    assert all(a.cycles is not None for a in split.alternatives)
    assert last not in {name for a in split.alternatives for name in a.operators}


def test_a_convolution_inside_of_a_pattern_is_not_said_to_be_no_operator_of_it() -> None:
    inner = Pattern("both", op("RELU", op("TANH", wildcard())))
    graph = relus([8])
    graph.ops[0].kind = "TANH"
    split = partition(graph, [unit("unit", lambda match: 99, inner)], COSTS)
    (refusal,) = split.refusals
    assert refusal.reason == "TANH only inside of pattern both, which does not fit here"


@pytest.mark.parametrize("answer", ["7", float("nan"), [1]])
def test_an_estimate_that_is_no_number_of_cycles_is_named(answer: object) -> None:
    wrong = unit("wrong", lambda match: 0, PATTERNS[0])
    vars(wrong)["estimate"] = lambda match: answer
    with pytest.raises(AcceleratorError, match=r"wrong, layer relu_0: estimate\(\) must return"):
        partition(relus([8]), [wrong], COSTS)


def test_where_code_lies_does_not_decide_between_equal_units() -> None:
    """The work that they leave to the core is simulated once for both."""

    class Noisy:
        asked = 0

        def operators(self, graph: Graph) -> dict[Op, int | None]:
            much: int | None = 10**9
            return dict.fromkeys(graph.ops, much)

        def requantizations(self, steps: Sequence[Requantize]) -> list[int | None]:
            self.asked += len(steps)
            return [1000 - number for number in range(len(steps))]

    units = find_backends(["qconv2d:requantize=false"] * 2)
    graph, costs = load_model("kws"), Noisy()
    split = partition(graph, units, costs)
    convolutions = [p for p in split.placements if p.backend is not None]
    assert len(convolutions) == costs.asked == 9
    assert {placement.target for placement in convolutions} == {"qconv2d"}
