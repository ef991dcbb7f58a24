"""Which layer goes where, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.partition import partition
from covp.errors import AcceleratorError, UsageError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.pattern import Match, Pattern, op, wildcard


class Taker(AcceleratorBackend):
    """Takes whatever its answer says."""

    peripheral = "nowhere:Nothing"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("relu", op("RELU", wildcard())),)
    answer: object = True

    def supports(self, match: Match) -> bool | str:
        return self.answer  # type: ignore[return-value]

    def lower(self, match: Match):
        return []

    def driver(self, base: int) -> dict[str, str]:
        return {}


def backend(label: str, reply: object = True, *patterns: Pattern) -> AcceleratorBackend:
    class Named(Taker):
        name = label
        answer = reply

    if patterns:
        Named.patterns = patterns
    return Named()


def chain(*kinds: str) -> Graph:
    tensors = [Tensor(f"t{i}", (1, 8), np.dtype(np.int8)) for i in range(len(kinds) + 1)]
    ops = [
        Op(kind, f"{kind.lower()}_{i}", [tensors[i]], [tensors[i + 1]], index=i)
        for i, kind in enumerate(kinds)
    ]
    return Graph("chain", [tensors[0]], [tensors[-1]], ops)


def test_every_operator_is_placed_once_in_running_order() -> None:
    graph = chain("RELU", "TANH", "RELU", "SOFTMAX")
    unit = backend("unit")
    split = partition(graph, [unit])
    assert [op for p in split.placements for op in p.ops] == graph.ops
    assert [p.backend is unit for p in split.placements] == [True, False, True, False]
    assert [(r.layer, r.reason) for r in split.refusals] == [
        ("tanh_1", "operator TANH; only RELU"),
        ("softmax_3", "operator SOFTMAX; only RELU"),
    ]


def test_the_first_backend_that_supports_a_layer_gets_it() -> None:
    graph = chain("RELU")
    picky, first, second = backend("picky", "size 8; at most 4"), backend("a"), backend("b")
    split = partition(graph, [picky, first, second])
    assert split.placements[0].backend is first
    assert [(r.accelerator, r.reason) for r in split.refusals] == [
        ("picky", "size 8; at most 4"),
        ("b", "a accepts it and was named first"),
    ]
    assert split.refusals[0].matched


def test_a_longer_pattern_is_preferred_and_its_refusal_forgotten_for_a_shorter_one() -> None:
    pair = Pattern("pair", op("TANH", op("RELU", wildcard())))
    single = Pattern("single", op("TANH", wildcard()) | op("RELU", wildcard()))
    split = partition(chain("RELU", "TANH"), [backend("unit", True, pair, single)])
    assert [len(p.ops) for p in split.placements] == [2]

    unit = backend("unit", True, pair, single)
    vars(unit)["supports"] = lambda match: len(match.ops) == 1 or "two operators"
    split = partition(chain("RELU", "TANH"), [unit])
    assert [p.backend for p in split.placements] == [unit, unit]
    assert split.refusals == ()


def test_refusals_that_looked_closely_come_first() -> None:
    split = partition(chain("TANH", "RELU"), [backend("unit", "too wide")])
    assert [r.reason for r in split.reasons("unit")] == ["too wide", "operator TANH; only RELU"]
    assert split.reasons("other") == []


def test_a_broken_backend_is_named_with_the_layer() -> None:
    with pytest.raises(AcceleratorError, match=r"accelerator odd, layer relu_0: .*not 7"):
        partition(chain("RELU"), [backend("odd", 7)])
    unit = backend("odd")
    vars(unit)["supports"] = lambda match: 1 / 0
    with pytest.raises(AcceleratorError, match=r"accelerator odd, layer relu_0: .*ZeroDivision"):
        partition(chain("RELU"), [unit])


def test_one_accelerator_twice_is_rejected() -> None:
    with pytest.raises(UsageError, match="two accelerators are named unit"):
        partition(chain("RELU"), [backend("unit"), backend("unit")])
