"""The parts of `covp verify`: the search, one check, the printed test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.accelerator.registry import find_backend
from covp.errors import AcceleratorError, CapacityError, CovpError, WrongResult
from covp.graph.attributes import Transpose
from covp.graph.graph import Graph
from covp.graph.reference import run_reference
from covp.testing import Case, ConvCase, OperatorCase
from covp.testing.layers import convolutions
from covp.testing.verify import check
from covp.testing.verify.bench import USUAL, Conditions, LayerOutcome
from covp.testing.verify.check import open_bench, run_case
from covp.testing.verify.driver_bench import DriverBench
from covp.testing.verify.printed_test import printed_test, spec_of
from covp.testing.verify.program_bench import ProgramBench
from covp.testing.verify.search import Budget, LayerSearch
from covp.testing.verify.stages import Stages, drawn_cases

LAYERS = convolutions("FULLY_CONNECTED", dtype="int8", batch=1)


class FakeBench:
    """Rejects odd depths, is wrong from depth 7 on, has no memory for 6; computes by reference."""

    def __init__(self, wrong_from: int = 7) -> None:
        self.backend = find_backend("gemm")
        self.platform = covp.load_platform("riscv32")
        self.wrong_from = wrong_from
        self.begun = 0
        self.rates = (0.0, 0.0)
        self.compiled: set[str] = set()

    def __enter__(self) -> FakeBench:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin(self) -> None:
        self.begun += 1

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
    ) -> LayerOutcome:
        (depth,) = graph.inputs[0].shape[1:]
        if depth == 6:
            raise CapacityError("too large", 2, 1)
        outputs = run_reference(graph, inputs)
        if depth >= self.wrong_from:
            outputs[0] = outputs[0] ^ 1
        elif depth % 2:
            return LayerOutcome(None, [], [])
        return LayerOutcome(outputs, [], [])


def test_the_search_ends_with_the_smallest_failing_layer() -> None:
    bench = FakeBench()
    search = LayerSearch(bench)
    assert not search.run_all(drawn_cases(LAYERS, 200, seed=0))
    assert isinstance(search.failing, ConvCase) and isinstance(search.error, WrongResult)
    assert search.failing.channels == (7, 1)
    assert (search.failing.activation, search.failing.bias, search.failing.gap) == (
        "none",
        False,
        0,
    )
    assert bench.begun > 0


def test_what_is_rejected_or_too_large_is_tried_but_not_accepted() -> None:
    """By its depth alone: odd ones are rejected, 6 is too large; no form changes that."""
    cases = [ConvCase("FULLY_CONNECTED", channels=(depth, 3)) for depth in range(1, 21)]
    search = LayerSearch(FakeBench(wrong_from=1000))
    search.helpful[0] = 1000  # no other form is tried
    assert search.run_all(cases)
    assert search.failing is None and search.error is None
    assert search.tried["FULLY_CONNECTED"] == 19 and search.too_large["FULLY_CONNECTED"] == 1
    assert search.accepted["FULLY_CONNECTED"] == 9
    assert isinstance(search.sample, ConvCase) and search.sample.channels == (20, 3)


@pytest.mark.parametrize(("seed", "count"), [(0, 40), (0, 1), (7, 20), (2**32, 9)])
def test_drawn_layers_depend_on_the_seed_alone(seed: int, count: int) -> None:
    first, again = (drawn_cases(LAYERS, count, seed) for _ in range(2))
    assert first == again and 1 <= len(first) <= count
    assert count == 1 or first != drawn_cases(LAYERS, count, seed + 1)


def test_no_layer_is_tried_after_the_budget_is_spent() -> None:
    search = LayerSearch(FakeBench(), Budget(0))
    assert search.run_all(drawn_cases(LAYERS, 20, seed=0))
    assert not search.tried


def test_a_failure_after_the_budget_is_shrunk_all_the_same() -> None:
    """The time for it is its own: no verdict depends on how much of the other is left."""

    class Ends(FakeBench):
        def run(self, *arguments: Any) -> LayerOutcome:
            budget.seconds = 0.0
            return super().run(*arguments)

    budget = Budget()
    search = LayerSearch(Ends(), budget)
    assert not search.run_all([ConvCase("FULLY_CONNECTED", channels=(30, 9), bias=True)])
    assert isinstance(search.failing, ConvCase)
    assert search.failing.channels == (7, 1) and not search.failing.bias


def test_a_layer_that_fails_in_a_usual_form_is_shrunk_in_that_form() -> None:
    """Rejected as drawn (the depth is odd), wrong when it is made even."""
    search = LayerSearch(FakeBench(wrong_from=10))
    assert not search.run_all([ConvCase("FULLY_CONNECTED", channels=(9, 5), batch=2)])
    assert isinstance(search.failing, ConvCase) and search.failing.channels == (10, 1)


def test_bytes_around_the_output_are_a_wrong_result() -> None:
    class Damages(FakeBench):
        def run(
            self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
        ) -> LayerOutcome:
            outputs = run_reference(graph, inputs)
            return LayerOutcome(outputs, [0x20000010, 0x20000011], [(0x20000000, 16)])

    with pytest.raises(WrongResult, match=r"2 bytes .* first at 0x20000010; .* 0x20000000\+16$"):
        run_case(Damages(), ConvCase())


def test_the_bench_fits_the_accelerator() -> None:
    with open_bench(find_backend("gemm"), "riscv32") as bench:
        assert isinstance(bench, DriverBench)
    with open_bench(find_backend("cfu"), "riscv32") as bench:
        assert isinstance(bench, ProgramBench)


def test_a_layer_larger_than_the_memory_is_a_capacity_error() -> None:
    """Not an accelerator's fault: the needed and the available bytes are in it."""
    large = ConvCase(kind="FULLY_CONNECTED", channels=(1000, 1000))
    with pytest.raises(CapacityError, match="does not fit") as caught:
        check("gemm", large)
    assert caught.value.needed > caught.value.available > 0
    assert not isinstance(caught.value, AcceleratorError)
    assert issubclass(WrongResult, CovpError)


@dataclass(frozen=True)
class OwnCase:
    """A case of a user's own."""

    kind: str = "TRANSPOSE"
    gap: int = 0
    attributes: Any = None

    def graph(self) -> Graph:
        return OperatorCase("TRANSPOSE", (2, 3), self.attributes).graph()

    def inputs(self) -> list[NDArray[Any]]:
        return [np.zeros((2, 3), np.int8)]


class Bare:
    """A case that is no dataclass."""

    kind, gap = "FULLY_CONNECTED", 0

    def graph(self) -> Graph:
        return ConvCase("FULLY_CONNECTED", channels=(4, 4)).graph()

    def inputs(self) -> list[NDArray[Any]]:
        return [np.zeros((1, 4), np.int8)]


@pytest.mark.parametrize(
    ("case", "imports"),
    [
        (ConvCase(), ["from covp.testing import ConvCase"]),
        (
            OperatorCase("TRANSPOSE", (2, 3), Transpose((1, 0))),
            [
                "from covp.graph.attributes import Transpose",
                "from covp.testing import OperatorCase",
            ],
        ),
        (
            OwnCase(attributes=Transpose((1, 0))),
            ["from covp.graph.attributes import Transpose", f"from {__name__} import OwnCase"],
        ),
    ],
)
def test_the_printed_test_imports_all_that_it_names(case: Case, imports: list[str]) -> None:
    text = printed_test("gemm", case, "riscv32")
    assert all(f"{line}\n" in text for line in [*imports, "from covp.testing.verify import check"])
    compile(text, "printed", "exec")
    assert f"case = {case!r}\n" in text and "check('gemm', case, platform='riscv32')\n" in text


def test_the_spec_of_an_instance_finds_its_class() -> None:
    for spec in ("gemm:size=4", "small=gemm:size=4"):
        assert spec_of(find_backend(spec)) == spec

    class Gemm(type(find_backend("gemm"))):  # type: ignore[misc]
        """Another class under a known name."""

    assert spec_of(Gemm()).endswith("test_search.py:" + Gemm.__qualname__)
    named = spec_of(Gemm({"size": 4}).with_name("mine"))
    assert named.startswith("mine=") and named.endswith(f":{Gemm.__qualname__}:size=4")


def test_cases_of_a_user_s_own_need_no_field_of_ours() -> None:
    assert LayerSearch(FakeBench(wrong_from=1000)).run_all([Bare()])


def test_only_layers_of_a_kind_that_is_compiled_are_few() -> None:
    bench = FakeBench()
    bench.compiled.add("CONV_2D")
    stages = Stages(LayerSearch(bench), {}, 20, 0, (), {}, {})
    for kind, tried in (("CONV_2D", 15), ("DEPTHWISE_CONV_2D", 60)):
        layers = iter([ConvCase(kind)] * 60)
        assert len(list(stages._affordable(layers))) == tried
