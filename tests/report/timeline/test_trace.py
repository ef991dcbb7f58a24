"""`covp run --trace`: the file is well-formed, and what it says adds up to what was counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from covp.device.virtual import VirtualDevice
from covp.evaluation import Sample, Wanted, build
from covp.evaluation import run as evaluate
from covp.report.timeline import timeline_of, timeline_of_log, write_trace
from covp.report.timeline.phases import phase_spans
from covp.runtime.session import Session
from tests.report.timeline.chrome_reader import read_trace
from tests.report.timeline.runs import (
    RUNS,
    Traced,
    function_cycles,
    records_of,
    runs,
    runs_with_jobs,
)

Make = Callable[..., Traced]


@runs
def test_nothing_takes_another_cycle(traced: Make, names: tuple[str, ...]) -> None:
    plain, found = traced(*names).plain, traced(*names).found
    assert plain.profile.cycles == found.profile.cycles
    assert plain.profile.instructions == found.profile.instructions
    assert [entry.causes for entry in plain.profile.layers] == [
        entry.causes for entry in found.profile.layers
    ]
    assert all(np.array_equal(*pair) for pair in zip(plain.outputs, found.outputs, strict=True))


@runs
def test_layers_add_up_to_the_run(traced: Make, names: tuple[str, ...]) -> None:
    run = traced(*names)
    profile, slices = run.plain.profile, run.trace.tracks["core", "layers"]
    between = [one for one in slices if one.name == "between layers"]
    assert sum(one.cycles for one in slices) == profile.cycles
    assert sum(one.args["instructions"] for one in slices) == profile.instructions
    assert sum(one.cycles for one in between) == profile.between.cycles
    for one, entry in zip(run.layers(), profile.layers, strict=True):
        assert (one.cycles, one.args["instructions"]) == (entry.cycles, entry.instructions)
        assert (one.args["index"], one.args["on"]) == (entry.index, entry.target)
        assert entry.name in one.name
    assert not any(one.inner for one in slices)
    (whole,) = run.trace.tracks["core", "run"]
    assert (whole.start, whole.end) == (0, profile.cycles)
    assert whole.args["cycles_are"] == run.trace.about["cycles_are"] == "estimated"


@pytest.mark.costly
@runs
def test_functions_spend_what_the_counter_says(traced: Make, names: tuple[str, ...]) -> None:
    own: Counter[str] = Counter()
    for one in traced(*names).trace.tracks["core", "functions"]:
        own[one.name] += one.args["self_cycles"]
        assert one.args["self_cycles"] == one.cycles - sum(each.cycles for each in one.inner)
    assert +own == function_cycles(traced(*names).plain.profile)


@pytest.mark.costly
@runs
def test_the_run_function_calls_the_layers(traced: Make, names: tuple[str, ...]) -> None:
    """In the order of the program."""
    program = traced(*names).plain.program
    slices = traced(*names).trace.tracks["core", "functions"]
    (caller,) = [one for one in slices if one.name == program.run_function]
    layers = [layer.function for layer in program.layers]
    assert [one.name for one in caller.inner if one.name in layers] == layers


@runs_with_jobs
def test_jobs_are_the_records(traced: Make, names: tuple[str, ...]) -> None:
    run, unit, records = traced(*names), names[2], records_of(names)
    jobs = [one for one in run.trace.tracks[unit, "jobs"] if one.name.startswith("job ")]
    layers = run.layers()
    for one, record in zip(jobs, records, strict=True):
        timing, layer = record.timing, layers[record.phase - 2]
        assert one.start == layer.start + record.start < layer.end
        assert one.cycles == record.end - record.start
        assert one.args["macs"] == record.macs
        assert one.args["bytes_read"] == record.traffic.read
        assert {name: one.args[name] for name in record.numbers} == dict(record.numbers)
        parts = {each.name: each.cycles for each in one.inner}
        longer = "compute" if timing.compute >= timing.memory else "memory"
        assert parts["start-up"] == timing.startup
        assert parts[longer] == max(timing.compute, timing.memory)
        assert sum(parts.values()) == one.cycles
    macs = run.trace.counters[unit, "MACs done"]
    assert macs[-1][1] == sum(record.macs or 0 for record in records) > 0


@runs_with_jobs
def test_waiting_is_what_the_counter_says(traced: Make, names: tuple[str, ...]) -> None:
    run = traced(*names)
    waits, causes = run.trace.tracks["core", "waiting"], run.plain.profile.causes
    assert causes is not None
    assert sum(one.cycles for one in waits) == causes["waited"] > 0
    assert {one.args["until_end_of"] for one in waits} == {names[2]}


@runs
def test_the_arena_is_full_to_what_is_reserved(traced: Make, names: tuple[str, ...]) -> None:
    run = traced(*names)
    points = run.trace.counters["core", "arena bytes live"]
    assert [time for time, _ in points] == [one.nanoseconds[0] for one in run.layers()]
    assert 0 < max(live for _, live in points) <= run.plain.memory.arena_bytes


def test_bytes_of_the_core_are_those_of_the_layers() -> None:
    made = build("sww", "riscv32")
    result = evaluate(made, check="none", wanted=Wanted(traffic=True, timeline=True))
    wanted: Counter[str] = Counter()
    for entry in result.profile.layers:
        for memory, moved in (entry.traffic or {})["core"].items():
            wanted[f"{memory}: bytes read"] += moved.read
            wanted[f"{memory}: bytes written"] += moved.written
            wanted[f"{memory}: bytes fetched"] += moved.fetched
    counters = timeline_of(result).counters
    found = {one.name: one.points[-1][1] for one in counters if ": bytes" in one.name}
    assert found == +wanted and found["ram: bytes written"] > 0


@runs_with_jobs
def test_bytes_and_starts_are_those_of_the_jobs(traced: Make, names: tuple[str, ...]) -> None:
    trace, unit, records = traced(*names).trace, names[2], records_of(names)
    moved = {name: points[-1][1] for (owner, name), points in trace.counters.items()
             if owner == unit and "bytes" in name}  # fmt: skip
    loaded = sum(value for name, value in moved.items() if name.endswith("read"))
    stored = sum(value for name, value in moved.items() if name.endswith("written"))
    # a descriptor, which a unit may fetch too, is no operand
    assert loaded >= sum(record.traffic.read for record in records)
    assert stored == sum(record.traffic.written or record.stored for record in records)
    accesses = trace.tracks["register accesses", unit]
    assert sum(one.name == "write CTRL" for one in accesses) == len(records)


@pytest.mark.costly
def test_parts_of_layers_add_up(tmp_path: Path) -> None:
    """Core and unit work at the same time, so a layer has several parts."""
    made = build("resnet", "riscv32", ["qconv2d"], overlap=True)
    result = evaluate(made, check="output", wanted=Wanted(timeline=True))
    write_trace(tmp_path / "a.json", timeline_of(result))
    trace = read_trace(tmp_path / "a.json")
    parts: Counter[int] = Counter()
    for one in trace.tracks["core", "layers"]:
        parts[one.args.get("layer", -1)] += one.cycles
    wanted = {at: entry.cycles for at, entry in enumerate(result.profile.layers) if entry.cycles}
    assert parts == wanted | {-1: result.profile.between.cycles}
    assert len(trace.tracks["core", "layers"]) > 2 * len(result.profile.layers) + 1
    jobs = [one for one in trace.tracks["qconv2d", "jobs"] if one.name.startswith("job ")]
    waiting = trace.tracks["core", "waiting"]
    assert sum(one.cycles for one in jobs) > sum(one.cycles for one in waiting)


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
@pytest.mark.parametrize("most", [150, 600])
def test_short_calls_move_into_sums(platform: str, most: int) -> None:
    """With less room for marks than there are calls, no cycle is lost."""
    made = build("resnet", platform)
    with Session(platform) as session:
        device = session.device
        assert isinstance(device, VirtualDevice)
        device.counts.count_functions()
        module = session.load(made.program)
        with device.counts.record_timeline(most) as recorder:
            module.run(*Sample.random(made.graph).inputs)
        wanted = function_cycles(module.profile())
    log = recorder.log
    assert log is not None and len(log.marks.marks) <= most and log.marks.lost == 0
    timeline = timeline_of_log(log, made.platform.clock_hz)
    own: Counter[str] = Counter()
    in_callers = 0
    for one in timeline.track("core", "functions").slices:
        own[one.name] += int(one.args["self_cycles"])
        in_callers += int(one.args.get("short_call_cycles", 0))
    prefix = "short_call_cycles_of_"
    sums = {key.removeprefix(prefix): int(cycles) for key, cycles in timeline.about.items()
            if key.startswith(prefix)}  # fmt: skip
    assert sum(sums.values()) == in_callers > 0 and timeline.notes
    own.update(sums)
    assert +own == wanted


def test_layers_are_there_when_functions_no_longer_fit() -> None:
    made = build("resnet", "riscv32")
    with Session("riscv32") as session:
        device = session.device
        assert isinstance(device, VirtualDevice)
        device.counts.count_functions()
        module = session.load(made.program)
        with device.counts.record_timeline(64) as recorder:
            module.run(*Sample.random(made.graph).inputs)
        profile = module.profile()
    assert recorder.log is not None
    spans = [span for span in phase_spans(recorder.log) if span.phase > 1]
    assert [span.end - span.start for span in spans] == [e.cycles for e in profile.layers]
    assert [span.instructions for span in spans] == [e.instructions for e in profile.layers]
    timeline = timeline_of_log(recorder.log, made.platform.clock_hz)
    assert any("left out" in note for note in timeline.notes)
    functions = timeline.track("core", "functions").slices
    assert max(one.end for one in functions) <= recorder.log.marks.lost_at


def test_a_device_without_times_gives_layers_alone(traced: Make) -> None:
    """As RTL does: what each layer takes is known, and not when."""
    plain = traced(*RUNS[1]).plain
    timeline = timeline_of(replace(plain, timeline=None))
    slices = timeline.track("core", "layers").slices
    assert [one.cycles for one in slices[:-1]] == [e.cycles for e in plain.profile.layers]
    assert slices[-1].cycles == plain.profile.between.cycles
    assert sum(one.cycles for one in slices) == plain.profile.cycles == timeline.cycles
    assert all(a.end == b.start for a, b in pairwise(slices)) and timeline.notes
