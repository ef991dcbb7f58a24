"""Programs in which core and units work at the same time: results, promises, the memory plan.

A unit stores its result when its time is up, so a program that reads too early, or writes over what
a unit is still to read or write, gives wrong bytes.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

import covp
from covp.accelerator.registry import find_backend
from covp.base.request import BuildOptions
from covp.building.list_schedule import list_schedule
from covp.building.part_costs import measure_parts
from covp.chip.platform_file import load_platform
from covp.codegen.generate import generate
from covp.codegen.overlap import Action, OverlapPlan
from covp.errors import AcceleratorError, UsageError
from covp.evaluation import Evaluation, build, run
from covp.graph.reference import run_reference
from covp.runtime.session import Session

from .graphs import chain, one_after_the_other, two_branches


@pytest.mark.parametrize(
    "platform, wait", [("cortex-m4", "poll"), ("cortex-m4", "sleep"), ("riscv32", "sleep")]
)
def test_a_branch_on_the_core_is_computed_while_the_unit_works(platform: str, wait: str) -> None:
    unit = f"gemm:wait={wait},bytes_per_cycle=1"
    alone = run(build(two_branches(), platform, [unit], schedules=None), check="none")
    result = run(build(two_branches(), platform, [unit], schedules=None, overlap=True))
    overlap, layers = result.build.overlap, {e.op: e for e in alone.profile.layers}
    assert result.matches_reference and result.check.layers == 3
    assert overlap is not None and result.profile.cycles and alone.profile.cycles
    assert overlap.promised == pytest.approx(result.profile.cycles, rel=0.02)
    # the shorter one of the two is hidden, all but some calls
    shorter = min(layers[op].cycles or 0 for op in ("CONV_2D", "DEPTHWISE_CONV_2D"))
    assert alone.profile.cycles - result.profile.cycles > shorter - 300


@pytest.mark.costly
@pytest.mark.parametrize(
    "platform, unit",
    [
        ("cortex-m4", "gemm:size=2"),
        ("riscv32", "qconv2d:depthwise=false,requantize=false,macs_per_cycle=2"),
    ],
)
def test_a_chain_gains_by_bands(platform: str, unit: str) -> None:
    result = run(build(chain(), platform, [unit], schedules=None, overlap=True))
    overlap = result.build.overlap
    assert result.matches_reference and result.check.layers == 6
    assert overlap is not None and overlap.rows and result.profile.cycles
    assert overlap.promised == pytest.approx(result.profile.cycles, rel=0.02)
    assert result.profile.cycles < 0.97 * overlap.alone
    by_layers = next(each for each in overlap.alternatives if each.what == "layers overlap")
    assert by_layers.cycles > overlap.promised, "layers of a chain depend on each other"
    record = result.record().overlap
    assert record is not None
    assert record.took_cycles == result.profile.cycles
    assert record.hidden_cycles == overlap.alone - overlap.promised > 0


def test_where_nothing_is_gained_the_program_is_the_usual_one() -> None:
    usual = build(one_after_the_other(), "cortex-m4", ["gemm"], schedules=None)
    made = build(one_after_the_other(), "cortex-m4", ["gemm"], schedules=None, overlap=True)
    assert made.overlap is not None and made.overlap.hidden == 0
    assert made.program.sources == usual.program.sources


def test_a_program_that_does_not_wait_gives_wrong_bytes() -> None:
    """That the results of these tests can be wrong at all."""
    platform, unit = load_platform("cortex-m4"), "gemm:startup_cycles=400000"
    inputs = [np.full((1, 16, 16, 8), 11, np.int8)]
    expected = run_reference(two_branches(), inputs)[0]
    begun, core, ended, last = (
        Action(0, 0, "begin"), Action(1, 0, "run"), Action(0, 0, "end"), Action(2, 0, "run"),
    )  # fmt: skip
    for actions, is_right in (
        ((begun, core, ended, last), True),
        ((begun, core, last, ended), False),
    ):
        program = generate(two_branches(), platform, [unit], plan=OverlapPlan({}, actions))
        with Session(platform) as session:
            got = session.load(program).run(*inputs)
        assert np.array_equal(got, expected) == is_right


def test_a_unit_without_functions_to_begin_and_end_is_waited_for() -> None:
    backend = find_backend("gemm")
    backend.overlaps = lambda function: None  # type: ignore[method-assign]
    made = build(two_branches(), "riscv32", [backend], schedules=None, overlap=True)
    assert made.overlap is not None and made.overlap.hidden == 0
    backend.overlaps = lambda function: "gemm_begin"  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(AcceleratorError, match=r"overlaps\(\) must return two function names"):
        build(two_branches(), "riscv32", [backend], schedules=None, overlap=True)


def test_without_an_accelerator_there_is_nothing_to_overlap() -> None:
    with pytest.raises(UsageError, match="name one with --accel"):
        build(chain(), "riscv32", overlap=True)


@pytest.mark.costly
def test_a_schedule_that_needs_more_memory_than_there_is_is_not_taken() -> None:
    """More tensors are alive at once in bands: here 16 KB, with the stack, are too little."""
    unit, roomy = ["gemm:size=2"], load_platform("cortex-m4")
    graph = chain(columns=16, channels=16)
    arena = covp.compile(graph, roomy, unit, schedules=None, overlap=True).arena_bytes
    memory = tuple(
        replace(region, size=16384) if region.kind == "ram" else region for region in roomy.memory
    )
    result = run(build(graph, replace(roomy, memory=memory), unit, schedules=None, overlap=True))
    assert result.matches_reference and result.memory.ram_bytes <= 16384
    assert arena + 4096 > 16384


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
@pytest.mark.parametrize(
    "model, unit, share", [("resnet", "gemm", 0.25), ("kws", "qconv2d:depthwise=false", 0.05)]
)
def test_networks_gain(model: str, unit: str, share: float, platform: str) -> None:
    """benchmarks/overlap.py has the figures."""
    alone = run(build(model, platform, [unit]), check="none").profile.cycles
    result = run(build(model, platform, [unit], overlap=True))
    took, overlap = result.profile.cycles, result.build.overlap
    assert result.matches_reference and overlap is not None and took and alone
    assert took < alone * (1 - share)
    assert overlap.promised == pytest.approx(took, rel=0.02)


def test_equal_units_share_the_layers_that_one_of_them_got() -> None:
    unit = "qconv2d:macs_per_cycle=1"  # which computes for much longer than the core starts it
    one, two = (
        run(build(one_after_the_other(), "riscv32", [unit] * n, schedules=None, overlap=True))
        for n in (1, 2)
    )
    assert one.matches_reference and two.matches_reference
    assert one.profile.cycles and two.profile.cycles and two.build.overlap is not None
    assert two.build.overlap.promised == pytest.approx(two.profile.cycles, rel=0.02)
    assert two.profile.cycles < 0.6 * one.profile.cycles
    busy = two.profile.busy
    assert sum(busy.values()) == pytest.approx(sum(one.profile.busy.values()), rel=0.02)
    assert min(busy.values()) > 0.3 * sum(busy.values())
    for entry in two.profile.layers:
        assert entry.work is not None and entry.work.share == pytest.approx(1)
    record = two.record()
    assert {tuple(layer.units or ()) for layer in record.layers} == {("qconv2d", "qconv2d_2")}
    assert {unit.name: unit.busy_cycles for unit in record.units} == busy


def test_units_that_are_not_equal_share_nothing() -> None:
    units = ["qconv2d:macs_per_cycle=1", "qconv2d:macs_per_cycle=2"]
    made = build(
        one_after_the_other(), "riscv32", units, schedules=None, overlap=True, allow_unused=True
    )
    assert {unit for layer in made.program.layers for unit in layer.units} == {"qconv2d_2"}


def test_an_equal_unit_without_layers_is_an_error_that_says_how_to_use_it() -> None:
    with pytest.raises(UsageError, match="qconv2d is equal and gets all; they share layers with"):
        build(one_after_the_other(), "riscv32", ["qconv2d", "qconv2d"], schedules=None)


def test_equal_units_have_one_queue_whoever_got_a_layer() -> None:
    """Costs that are alike but for where code lies may give layers to any of them."""
    plan = OverlapPlan({"conv_2d_0": 2, "conv_2d_1": 2})
    options = BuildOptions(allow_unused=True)
    graph, units = one_after_the_other(), ["qconv2d", "qconv2d"]
    measured = measure_parts(generate(graph, "riscv32", units, options, plan=plan), "zig")
    first, second = measured.program.layers
    layers = (first, dataclasses.replace(second, target="qconv2d_2"))
    program = dataclasses.replace(measured.program, layers=layers)
    changed = dataclasses.replace(measured, program=program)
    running: set[str] = set()
    for action in list_schedule(changed.tasks(), changed.units).actions:
        if action.what == "begin":
            assert action.unit not in running
            running.add(action.unit)
        elif action.what == "end":
            running.remove(action.unit)
    assert changed.queues == ["qconv2d", "qconv2d"]


def test_units_on_one_port_are_promised_to_wait_for_each_other() -> None:
    platform = load_platform("riscv32")
    assert platform.accelerators is not None
    shared = replace(platform, accelerators=replace(platform.accelerators, shared_port=True))
    units = ["qconv2d:macs_per_cycle=16,bytes_per_cycle=1"] * 2  # limited by their ports
    own, together = (
        run(build(one_after_the_other(), where, units, schedules=None, overlap=True))
        for where in (platform, shared)
    )
    assert own.matches_reference and together.matches_reference
    assert own.profile.cycles and together.profile.cycles and together.build.overlap is not None
    assert together.build.overlap.promised == pytest.approx(together.profile.cycles, rel=0.02)
    assert together.profile.cycles > 1.2 * own.profile.cycles
    works = [entry.work for entry in together.profile.layers if entry.work]
    moved = sum((work.bytes_read or 0) + (work.bytes_written or 0) for work in works)
    assert together.profile.cycles > moved, "a port of one byte a cycle cannot move all in less"


def test_advice_counts_once_what_equal_units_do_at_the_same_time() -> None:
    def of(macs: int) -> Evaluation:
        units = [f"qconv2d:macs_per_cycle={macs}"] * 2
        made = build(one_after_the_other(), "riscv32", units, schedules=None, overlap=True)
        return run(made, check="none")

    slow, fast = of(1), of(2)
    (advice,) = (each for each in slow.advice if "multipliers" in each.seen)
    assert slow.profile.cycles and fast.profile.cycles
    saved = slow.profile.cycles - fast.profile.cycles
    assert advice.cycles == pytest.approx(saved, rel=0.1)
