"""The law of time: a trace costs what the device counted, by its own timing model and by others."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp
import covp.device.machine.execution as execution
from covp.chip.platform_file import Platform, load_platform
from covp.device.timing.model import load_timing
from covp.device.timing.trace import Trace, cost
from covp.device.virtual import VirtualDevice
from tests.conftest import load
from tests.device.test_counting_property import prepare, programs, single_step

PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]
MODELS = {
    "arm": ["m0plus", "m3", "m4", "m7", "m33", "unit"],
    "riscv": ["rv32", "cv32e40p", "ibex-small", "unit"],
}
SETTINGS = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def timed_by(platform: Platform, model: str) -> Platform:
    return msgspec.structs.replace(platform, timing=model)


def traced(platform: Platform, name: str, code: bytes, edges: bool = False) -> tuple[Trace, int]:
    """The trace of generated code, and the cycles that were counted as it ran."""
    base = platform.flash.start
    with VirtualDevice(platform) as device:
        device.core.counter.trace_edges(edges)
        device.write(base, code)
        prepare(device.core.write_register, platform.core.architecture == "arm", name)
        device.execute(base, base + len(code))
        return device.counts.trace(), device.cycles


# -- generated programs ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLATFORMS)
@SETTINGS
@given(data=st.data())
def test_generated_programs(
    name: str, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    code = data.draw(programs(name))
    monkeypatch.setattr(execution, "SLICE", data.draw(st.sampled_from([1, 3, 17, 1 << 30])))
    platform = load_platform(name)
    models = MODELS[platform.core.architecture]
    first, second = data.draw(st.sampled_from(models)), data.draw(st.sampled_from(models))
    edges = data.draw(st.booleans())
    trace, cycles = traced(timed_by(platform, first), name, code, edges)
    assert trace.cycles == cost(trace, load_timing(first)) == cycles
    assert trace.instructions == len(single_step(name, code)[0])
    # the same run, timed by another model: as if it had run by that
    assert cost(trace, load_timing(second)) == traced(timed_by(platform, second), name, code)[1]


@pytest.mark.parametrize("name", PLATFORMS)
@SETTINGS
@given(data=st.data())
def test_edges_of_generated_programs(name: str, data: st.DataObject) -> None:
    """Against the sequence of pcs of single stepping, the stop at its end."""
    code = data.draw(programs(name))
    platform = load_platform(name)
    trace, _ = traced(platform, name, code, edges=True)
    steps = single_step(name, code)[0]
    went = Counter(pairwise([*steps, platform.flash.start + len(code)]))
    assert edges_between_instructions(trace) == {
        (source, target): count for (source, target), count in went.items() if source in ends(trace)
    }


def ends(trace: Trace) -> set[int]:
    """Addresses of the last instructions of blocks."""
    return {b.address + b.size - b.code[-1].bytes for b in trace.blocks if b.code}


def edges_between_instructions(trace: Trace) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for edge in trace.edges:
        block = trace.blocks[edge.source]
        found[block.address + block.size - block.code[-1].bytes, edge.target] += edge.count
    return dict(found)


# -- calls, returns and jumps to registers ---------------------------------------------------------

CALLS = {
    "cortex-m4": """
start:
    movs r4, #7
again:
    bl leaf
    bl far
    lsls r0, r4, #31
    bne odd
    bl leaf
odd:
    subs r4, #1
    bne again
    ldr r2, =0x20003000
    adr r1, end
    b end
    .ltorg
leaf:
    cbz r5, quick
    adds r5, #1
quick:
    bx lr
far:
    push {r4, lr}
    bl leaf
    pop {r4, pc}
end:
    b end
""",
    "riscv32": """
start:
    li s0, 7
    lui sp, 0x80004
again:
    jal leaf
    jal far
    andi a0, s0, 1
    bnez a0, odd
    jal leaf
odd:
    addi s0, s0, -1
    bnez s0, again
    j end
leaf:
    beqz a5, quick
    addi a5, a5, 1
quick:
    ret
far:
    mv t0, ra
    la t1, leaf
    jalr t1
    jr t0
end:
    j end
""",
}


def stepped(name: str) -> Counter[tuple[int, int]]:
    """(pc, next pc) of every instruction of CALLS, by a debugger's steps."""
    loaded = load(name, CALLS[name])
    found: Counter[tuple[int, int]] = Counter()
    with loaded.device as device:
        device.core.write_register("pc", loaded.labels["start"])
        pc = loaded.labels["start"]
        while pc != loaded.labels["end"]:
            device.step()
            after = device.core.read_register("pc") & ~1
            found[pc, after] += 1
            pc = after
    return found


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("slice_length", [5, 1 << 30])
def test_edges_of_calls(name: str, slice_length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    went = stepped(name)
    monkeypatch.setattr(execution, "SLICE", slice_length)
    loaded = load(name, CALLS[name])
    with loaded.device as device:
        device.core.counter.trace_edges()
        stop = loaded.run()
        trace = device.counts.trace()
        found = edges_between_instructions(trace)
        last = {edge for edge in went if edge[1] == loaded.labels["end"]}
        expected = {e: n for e, n in went.items() if e[0] in ends(trace) and e not in last}
        assert {edge: n for edge, n in found.items() if edge not in last} == expected
        assert stop.cycles == cost(trace, device.core.timing)
        # a second run doubles everything, and is apart from the first
        loaded.run()
        second = device.counts.trace().since(trace)
        assert edges_between_instructions(second) == found
        assert cost(second, device.core.timing) == stop.cycles


def test_edges_of_returns_only_while_traced() -> None:
    loaded = load("riscv32", CALLS["riscv32"])
    with loaded.device as device:
        loaded.run()
        before = device.counts.trace()
        device.core.counter.trace_edges()
        loaded.run()
        during = device.counts.trace()
        device.core.counter.trace_edges(False)
        loaded.run()
        after = device.counts.trace()
    ret = loaded.labels["quick"]
    counts = [
        sum(n for (source, _), n in edges_between_instructions(t).items() if source == ret)
        for t in (before, during.since(before), after.since(during))
    ]
    assert counts == [0, 7 + 7 + 3, 0]
    assert cost(after, load_timing("rv32")) == after.cycles == 3 * before.cycles


def test_many_targets_of_one_return() -> None:
    """More than a version has room for, and more than the hash table starts with."""
    calls = 700
    text = "start:\n" + " jal leaf\n" * calls + "end:\n j end\nleaf:\n ret"
    loaded = load("riscv32", text)
    with loaded.device as device:
        device.core.counter.trace_edges()
        loaded.run()
        loaded.run()
        found = edges_between_instructions(device.counts.trace())
    ret = loaded.labels["leaf"]
    targets = {target: n for (source, target), n in found.items() if source == ret}
    assert len(targets) == calls and set(targets.values()) == {2}


# -- code that changes -----------------------------------------------------------------------------


def test_code_that_is_replaced_keeps_its_own_cost() -> None:
    mulh, add = 0x02C59533, 0x00C58533
    with VirtualDevice(load_platform("riscv32")) as device:
        base = device.platform.ram.start
        for bits in (mulh, add, mulh):
            device.write(base, bits.to_bytes(4, "little") + bytes.fromhex("01000100"))
            device.execute(base, base + 8)
        trace = device.counts.trace()
        assert trace.cycles == cost(trace, load_timing("rv32")) == device.cycles == 2 * 7 + 3
        assert cost(trace, load_timing("unit")) == 9


@pytest.mark.costly
def test_code_in_the_place_of_other_code_costs_what_it_costs_alone() -> None:
    platform = load_platform("cortex-m7")
    programs = {name: covp.compile(name, platform) for name in ("toycar", "kws")}

    def cycles(*names: str) -> int | None:
        """Of the last program, after the others on the same device."""
        with VirtualDevice(platform) as device:
            for name in names:
                session = covp.Session(platform, device=device)
                graph = session.load(programs[name])
                graph.run(*(np.zeros(t.shape, t.dtype) for t in programs[name].inputs))
        return graph.profile().cycles

    alone = cycles("toycar")
    assert cycles("kws", "toycar") == alone
    assert cycles("toycar", "kws", "toycar") == alone


# -- real kernels ----------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("name", ["riscv32", "cortex-m4"])
def test_real_kernels(name: str) -> None:
    platform = load_platform(name)
    first, second = ("rv32", "unit") if name == "riscv32" else ("m4", "m7")

    def run(model: str) -> tuple[Trace, int]:
        device = VirtualDevice(timed_by(platform, model))
        # no recorded schedules: other cycles would choose others
        program = covp.compile("kws", device.platform, schedules=None)
        x = [np.zeros(t.shape, t.dtype) for t in program.inputs]
        device.core.counter.trace_edges()
        with covp.Session(device.platform, device=device) as session:
            graph = session.load(program)
            before, cycles = device.counts.trace(), device.cycles
            graph.run(*x)
            return device.counts.trace().since(before), device.cycles - cycles

    trace, cycles = run(first)
    assert cost(trace, load_timing(first)) == trace.cycles == cycles
    assert cost(trace, load_timing(second)) == run(second)[1]
    # what goes into the blocks of code comes out of them: counts agree with edges
    left = Counter[int]()
    for edge in trace.edges:
        left[edge.source] += edge.count
    for position, block in enumerate(trace.blocks):
        assert 0 <= block.count - left[position] <= 20
