"""Layers of several operators, layers of stated limits, and jobs of all times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from covp.accelerator.registry import find_backend
from covp.errors import CovpError
from covp.graph.pattern import Pattern, constant, conv2d, op, optional, wildcard
from covp.graph.reference import run_reference
from covp.hardware.observer import Observer
from covp.testing import ConvCase, ElementwiseCase, PoolCase
from covp.testing.case import Case
from covp.testing.verify.bench import Conditions
from covp.testing.verify.chain import ChainCase, fit_part, refit
from covp.testing.verify.check import check, open_bench
from covp.testing.verify.designs import designs
from covp.testing.verify.driver_bench import DriverBench
from covp.testing.verify.extents import sweep
from covp.testing.verify.pattern_layers import pattern_layers
from covp.testing.verify.search import smaller
from covp.testing.verify.stages import stated_limits
from covp.testing.verify.usual_forms import usual_form

CONV = conv2d(wildcard("input"), constant("weights"), optional("bias"))


@pytest.mark.parametrize(
    "node",
    [
        op("MAX_POOL_2D", CONV),
        op("ADD", CONV, wildcard("skip")),
        op("ADD", CONV, op("CONV_2D")),
        op("FULLY_CONNECTED", op("RESHAPE", CONV, constant()), constant(), optional()),
        op("LOGISTIC", op("FULLY_CONNECTED", wildcard(), constant(), optional())),
    ],
)
def test_layers_are_drawn_from_a_pattern_of_several_operators(node: object) -> None:
    """They match it, and the reference computes them."""
    pattern = Pattern("several", node)  # type: ignore[arg-type]
    (strategy,) = pattern_layers(pattern).values()
    matched = 0

    @settings(
        max_examples=25, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def each(case: ChainCase) -> None:
        nonlocal matched
        graph = case.graph()
        (result,) = run_reference(graph, case.inputs())
        assert result.shape == graph.outputs[0].shape
        matched += pattern.match(graph, graph.ops[-1]) is not None

    each()
    assert matched >= 15


def test_a_pool_behind_a_convolution_gets_windows_of_the_lowest_values() -> None:
    """Else padding with the zero point is never the maximum: no window lies below it."""
    chain = ChainCase(
        (ConvCase(size=(6, 6), channels=(3, 8), activation="relu"), PoolCase("MAX_POOL_2D")),
        ((1, 0, 0),),
    )
    low = PoolCase("MAX_POOL_2D", (6, 6), 8, (3, 3), same=True, content="lowest")
    case = fit_part(chain, 1, low)
    assert case is not None
    graph = case.graph()
    (result,) = run_reference(graph, case.inputs())
    zero = graph.outputs[0].zero_point
    below = (result < zero).all(axis=(0, 1, 2))
    assert below.any() and not below.all()


def test_a_reader_gets_the_shape_of_another_writer() -> None:
    chain = ChainCase(
        (
            ConvCase(size=(4, 6), channels=(2, 3)),
            PoolCase("MAX_POOL_2D", (4, 6), 3, (2, 2), (2, 2)),
        ),
        ((1, 0, 0),),
    )
    other = refit(chain, [ConvCase(size=(9, 5), channels=(1, 7)), chain.parts[1]])
    assert other is not None and other.graph().outputs[0].shape == (1, 4, 2, 7)
    two = ChainCase(
        (ConvCase(), ConvCase(), ElementwiseCase(shape=(1, 1, 1, 1))), ((2, 0, 0), (2, 1, 1))
    )
    assert refit(two, [ConvCase(channels=(1, 2)), *two.parts[1:]]) is None


@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 1])
def test_a_broadcast_operand_follows_the_other_one_through_a_chain(position: int) -> None:
    """A skip connection gets layers of all shapes, in all forms, at either operand of the sum."""
    chain = ChainCase(
        (
            ConvCase(size=(4, 6), channels=(2, 18), kernel=(3, 3), same=True),
            ElementwiseCase(shape=(1, 4, 6, 18)),
        ),
        ((1, position, 0),),
    )
    broadcast = 0
    for layer in designs("ADD"):
        case = fit_part(chain, 1, layer)
        forms: list[Case | None] = [case]
        if isinstance(layer, ElementwiseCase):
            forms.append(refit(chain, [chain.parts[0], layer]))
        if case is not None:
            forms += [usual_form(case, number) for number in range(13)]
            forms += list(smaller(case))[:40]
        for form in forms:
            if form is not None:
                graph = form.graph()
                (result,) = run_reference(graph, form.inputs())
                assert result.shape == graph.outputs[0].shape
                broadcast += graph.ops[-1].input(0).shape != graph.ops[-1].input(1).shape
    assert broadcast > 50


def test_the_limits_of_an_expert_s_accelerator_are_those_that_it_states() -> None:
    file = Path(__file__).parent / "planted" / "adder.py"
    case = ElementwiseCase(shape=(1, 5))
    assert 31 in stated_limits(find_backend(str(file)), [case])
    assert 4095 in stated_limits(find_backend(f"{file.parent / 'conv.py'}"))


@pytest.mark.parametrize("kind", ["CONV_2D", "FULLY_CONNECTED", "ADD", "MAX_POOL_2D", "SOFTMAX"])
def test_a_sweep_visits_every_small_extent(kind: str) -> None:
    shapes = [case.graph().outputs[0].shape for case in sweep(kind)]
    last = {shape[-1] for shape in shapes}
    assert set(range(1, 101)) <= last


def test_buffers_are_where_the_conditions_want_them() -> None:
    case = ConvCase("FULLY_CONNECTED", channels=(5, 3))
    with open_bench(find_backend("gemm"), "riscv32") as bench:
        assert isinstance(bench, DriverBench)
        start, size = bench.arena()
        for number in range(8):
            outcome = bench.run(case.graph(), case.inputs(), Conditions(last=number))
            assert outcome.outputs is not None
            np.testing.assert_array_equal(
                outcome.outputs[0], run_reference(case.graph(), case.inputs())[0]
            )
        reads: list[int] = []

        class Loads(Observer):
            def load(self, master: str, address: int, size: int) -> None:
                reads.append(address + size)

        bench.device.board.bus.observe(Loads())
        for number in range(8):
            bench.run(case.graph(), case.inputs(), Conditions(last=number))
        assert start + size in reads
        reads.clear()
        for far in range(4):  # a bit for the input, one for the result
            outcome = bench.run(case.graph(), case.inputs(), Conditions(apart=True, far=far))
            assert {end >> 28 for end in reads} == {0x2, 0xA if far & 1 else 0x8}  # 2: flash
            assert [address >> 28 for address, _ in outcome.buffers] == [0xA if far & 2 else 0x8]
            reads.clear()


def test_a_job_s_time_is_a_part_of_a_printed_test(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "planted" / "conv.py").read_text(encoding="utf-8")
    wait = "            covp_job_wait(&CONV_CTRL, @line@);\n"
    delay = "for (volatile int i = 0; i < 200000; i++) { }\n(void)CONV_STATUS;\n"
    file = tmp_path / "conv.py"
    file.write_text(text.replace(wait, delay), encoding="utf-8")
    case = ConvCase(size=(3, 3), channels=(2, 2))
    check(str(file), case)  # a read of STATUS waits in simulation
    with pytest.raises(CovpError, match="driver returned while the unit was busy"):
        check(str(file), case, cycles=20_000_000)
