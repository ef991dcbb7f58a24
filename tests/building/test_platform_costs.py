"""Schedules are chosen by the cycles that they take on the platform with its memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from covp.base.request import BuildOptions, Objective
from covp.building import platform_costs
from covp.building.core_costs import simulated_cycles
from covp.building.platform_costs import measure_recorded
from covp.building.schedules import RecordedSchedules
from covp.building.tune.keys import layer_key
from covp.building.tune.records import VERSION, Records, ScheduleTrial
from covp.building.tune.trial import best_of
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.generate import generate
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.compilers.toolchain import get_toolchain
from covp.graph.graph import Graph, Op
from covp.graph.passes import run_passes
from covp.testing.convolution_case import ConvCase

SLOW = """
name: slow
core: cortex-m4f
clock_hz: 100_000_000
memory:
  - {{name: flash, kind: flash, start: 0x08000000, size: 256K, wait_states: {waits}}}
  - {{name: ram, kind: ram, start: 0x20000000, size: 64K}}
"""


def platform(folder: Path, waits: int) -> Platform:
    path = folder / "slow.yaml"
    path.write_text(SLOW.format(waits=waits))
    return load_platform(path)


def model() -> Graph:
    """A 1x1 convolution of few pixels: its weights are read often, and wide ones cost waits."""
    case = ConvCase(size=(3, 4), channels=(32, 24), kernel=(1, 1), same=True, bias=True)
    return case.graph()


def candidates(op: Op, target: Platform) -> list[Schedule]:
    found = schedules(KernelRequest(op, target.core, "layer"))
    return [s for s in found if s.tile == "smlad" and s["channels"] == 1 and s["unroll"] == 4]


def recorded(target: Platform, op: Op) -> RecordedSchedules:
    """Trials of no memory that is known, of which one alone looks good."""
    compiler = get_toolchain("zig", target.core).version
    known = Records([])
    for number, schedule in enumerate(candidates(op, target)):
        figures = 1000 + number, 2000 + number, 500 + number, 0, True
        known.add(
            ScheduleTrial(
                layer_key(op), target.core.key, compiler, VERSION, str(schedule), *figures
            )
        )
    return RecordedSchedules(known, target, compiler)


@pytest.mark.costly
@pytest.mark.parametrize("waits", [0, 9])
def test_the_fewest_cycles_of_the_platform_are_chosen(tmp_path: Path, waits: int) -> None:
    """Each candidate in a program of its own, one after the other."""
    target, graph = platform(tmp_path, waits), model()
    (op,) = run_passes(graph).ops
    spent = {}
    for schedule in candidates(op, target):
        program = generate(graph, target, schedules=lambda op, s=schedule: s)  # type: ignore[misc]
        cycles = simulated_cycles(program)
        assert cycles is not None
        spent[str(schedule)] = sum(cycles)
    assert len(spent) > 4 and len(set(spent.values())) > 2

    def make(*, schedules: object) -> object:
        return generate(graph, target, schedules=schedules)  # type: ignore[arg-type]

    found = measure_recorded(recorded(target, op), run_passes(graph), make, 64)  # type: ignore[arg-type]
    choose = msgspec.structs.replace  # options are structures
    for objective in ("cycles", "energy"):
        options = choose(BuildOptions(), optimize=objective, flash_trade=None)
        best = best_of(found.measured[layer_key(op)], options)
        assert best is not None and spent[best.schedule] == min(spent.values())
    assert {t.schedule: t.cycles for t in found.measured[layer_key(op)]} == spent


def test_what_was_measured_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, graph = platform(tmp_path, 3), model()
    (op,) = run_passes(graph).ops

    def measure() -> RecordedSchedules:
        return measure_recorded(
            recorded(target, op),
            run_passes(graph),
            lambda *, schedules: generate(graph, target, schedules=schedules),
            4,
        )

    first = measure()
    monkeypatch.setattr(platform_costs, "simulated_cycles", lambda *_: pytest.fail("measured"))
    again = measure()
    assert again.measured == first.measured and len(first.measured[layer_key(op)]) == 4


@pytest.mark.parametrize(("spent", "wins"), [(1500, True), (2500, False)])
def test_a_record_of_the_same_memory_counts_beside_what_was_measured(
    tmp_path: Path, spent: int, wins: bool
) -> None:
    target = platform(tmp_path, 3)
    (op,) = run_passes(model()).ops
    found = recorded(target, op)
    first, second, *_ = (str(schedule) for schedule in candidates(op, target))

    def one(schedule: str, cycles: int) -> ScheduleTrial:
        return ScheduleTrial(
            layer_key(op), target.core.key, found.compiler, VERSION, schedule,
            1000, cycles, 500, 0, True, memory=target.memory_timing,
        )  # fmt: skip

    found.records.add(one(first, spent))
    measured = replace(found, measured={layer_key(op): [one(second, 2000)]})
    chosen = measured.trial(op)
    assert chosen is not None and chosen.schedule == (first if wins else second)


def trial(
    schedule: str, instructions: int, cycles: int, flash: int, memory: str = ""
) -> ScheduleTrial:
    figures = instructions, cycles, flash, 0, True
    return ScheduleTrial("a", "cortex-m4f", "zig 1", VERSION, schedule, *figures, memory=memory)


@pytest.mark.parametrize(
    ("objective", "wanted"),
    [("cycles", "wide"), ("energy", "wide"), ("instructions", "short"), ("balanced", "close"),
     ("size", "small")],
)  # fmt: skip
def test_each_objective(objective: Objective, wanted: str) -> None:
    known = [
        trial("wide", 900, 1000, 40_000),
        trial("close", 950, 1200, 12_500),
        trial("far", 950, 1199, 12_501),
        trial("short", 800, 1500, 41_000),
        trial("small", 2000, 2500, 10_000),
    ]
    best = best_of(known, BuildOptions(optimize=objective, flash_trade=None))
    assert best is not None and best.schedule == wanted


def test_the_key_of_a_memory_is_what_it_adds(tmp_path: Path) -> None:
    plain = load_platform("cortex-m4")
    assert plain.memory_timing == platform(tmp_path, 0).memory_timing == ""
    keys = {platform(tmp_path, waits).memory_timing for waits in (1, 2)}
    assert len(keys) == 2 and "" not in keys
    assert (
        load_platform("nucleo-l4r5zi").memory_timing
        != load_platform("nucleo-l4r5zi-single-bank").memory_timing
    )
    # another place and size of the same memory
    moved = SLOW.format(waits=2).replace("0x08000000", "0x10000000").replace("256K", "512K")
    (tmp_path / "moved.yaml").write_text(moved)
    assert (
        load_platform(tmp_path / "moved.yaml").memory_timing == platform(tmp_path, 2).memory_timing
    )
