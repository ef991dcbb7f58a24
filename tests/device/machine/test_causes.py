"""Every cycle has a cause, by layer and by function: they add up to all that was counted."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp
import covp.device.machine.execution as execution
from covp.chip.platform_file import Platform, load_platform
from covp.cli.main import main
from covp.device.phase_count import Causes, PhaseCount, add_causes
from covp.device.stop import Stop
from covp.device.virtual import VirtualDevice
from covp.runtime.profile import LayerProfile, Profile
from tests.conftest import Loaded, load
from tests.device.test_counting_property import prepare, programs
from tests.device.test_interrupts import BASE, LINE, Worker, arm

PLATFORMS = ["cortex-m7", "cortex-m4", "cv32e40p", "riscv32"]
SETTINGS = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def adds_up(count: PhaseCount | LayerProfile) -> None:
    assert count.causes is not None and min(count.causes.values()) >= 0
    assert sum(count.causes.values()) == count.cycles
    assert sum(function.cycles for function in count.functions) == count.cycles
    assert sum(function.instructions for function in count.functions) == count.instructions
    for cause, cycles in count.causes.items():
        assert sum(function.causes[cause] for function in count.functions) == cycles


def slow(platform: Platform, fetch: int, flash: int, ram: int) -> Platform:
    """With wait states of fetches, and of the data of each kind of memory."""
    waits = {
        "flash": {"fetch": fetch, "data": flash},
        "ram": {"fetch": fetch, "data": ram},
    }
    regions = [
        msgspec.structs.replace(
            region, wait_states=msgspec.convert(waits[region.kind], type(region.waits))
        )
        for region in platform.memory
    ]
    return msgspec.structs.replace(platform, memory=regions)


# -- generated programs ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m0plus", "riscv32"])
@SETTINGS
@given(data=st.data())
def test_generated_programs(
    name: str, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    """Runs that are cut short anywhere, phases and functions that begin anywhere."""
    code = data.draw(programs(name))
    monkeypatch.setattr(execution, "SLICE", data.draw(st.sampled_from([1, 3, 17, 1 << 30])))
    platform = load_platform(name)
    if data.draw(st.booleans()):
        platform = slow(platform, 1, *data.draw(st.sampled_from([(0, 0), (2, 2), (3, 1)])))
    base = platform.flash.start
    places = st.lists(st.integers(0, len(code) // 2), max_size=5, unique=True)
    with VirtualDevice(platform) as device:
        marks = [(base + 2 * place, n) for n, place in enumerate(data.draw(places), 1)]
        device.core.counter.set_functions(marks, 6)
        device.counts.set_phases(
            [(base + 2 * place, n) for n, place in enumerate(data.draw(places))]
        )
        device.write(base, code)
        total = np.zeros(device.core.counter.read_costs().shape[-1] - 1, np.int64)
        for run in (1, 2):
            prepare(device.core.write_register, platform.core.architecture == "arm", name)
            stop = device.execute(base, base + len(code))
            spending = device.core.counter.read_costs()
            counts = device.counts.phases().counts()
            assert [rows[:, 0].sum() for rows in spending] == [c.instructions for c in counts]
            assert [rows[:, 1:].sum() for rows in spending] == [c.cycles for c in counts]
            assert [sum(p.causes.values()) for p in stop.phases if p.causes] == [
                phase.cycles for phase in stop.phases
            ]
            total = spending[:, :, 1:].sum(axis=(0, 1))
            assert list(device.counts.trace().causes.values()) == total.tolist(), run


def test_a_snapshot_has_them_all() -> None:
    text = "start:\n li a0, 9\nloop:\n lw a1, 0(sp)\n addi a0, a0, -1\n bnez a0, loop\nend:\n j end"
    loaded = load("cv32e40p", text)
    with loaded.device as device:
        device.counts.set_phases([(loaded.labels["start"], 1)])
        loaded.run()
        state, before = device.board.save_state(), device.counts.phases().counts()
        loaded.run()
        twice = device.counts.phases().counts()
        device.board.load_state(state)
        assert device.counts.phases().counts() == before != twice
        loaded.run()
        assert device.counts.phases().counts() == twice


# -- cycles in which no code runs ------------------------------------------------------------------


def test_waiting_and_exceptions_belong_to_the_code_that_they_hold_up(
    program: Callable[..., Loaded],
) -> None:
    body = """
    bl waits
    ldr r4, =500
    str r4, [r6]
    bl spins
    b end
    .type waits, %function
waits:
    ldr r1, =300
    str r1, [r6, #8]
    bx lr
    .ltorg
    .type spins, %function
spins:
    cmp r7, #0
    beq spins
    bx lr
    .type around, %function  @ and the handler behind it
around:
    nop
"""
    loaded = program("cortex-m4", arm(body))
    device = loaded.device
    device.attach(Worker(), BASE, "worker", LINE)
    device.board.names.symbols.add(str(loaded.elf))
    device.counts.count_functions()
    device.counts.set_phases([])
    stop = loaded.run()
    (phase,) = stop.phases
    adds_up(phase)
    spent = {function.name: function.causes for function in phase.functions}
    assert {name: causes["waited"] for name, causes in spent.items() if causes["waited"]} == {
        "waits": 300
    }
    # the manual's 12 cycles each for entry and return; the entry interrupts the loop
    exceptions = {name: causes["exceptions"] for name, causes in spent.items()}
    assert exceptions.pop("spins") + exceptions.pop("around") == sum(
        causes["exceptions"] for causes in spent.values()
    )
    assert set(exceptions.values()) == {0}
    assert (phase.causes or {})["exceptions"] == device.counts.trace().causes["exceptions"] > 12


# -- models ----------------------------------------------------------------------------------------


def profiled(platform: Platform, accelerators: list[str]) -> tuple[Profile, Stop, Causes]:
    """An inference; the causes of its trace."""
    program = covp.compile("kws", platform, accelerators=accelerators)
    stops: list[Stop] = []
    with VirtualDevice(platform) as device, covp.Session(platform, device=device) as session:
        device.counts.count_functions()
        graph = session.load(program)
        before, execute = device.counts.trace(), device.execute

        def kept(*arguments: object, **options: object) -> Stop:
            stops.append(execute(*arguments, **options))  # type: ignore[arg-type]
            return stops[-1]

        device.execute = kept  # type: ignore[method-assign]
        graph.run(*(np.zeros(t.shape, t.dtype) for t in program.inputs))
        (stop,) = stops
        return graph.profile(), stop, device.counts.trace().since(before).causes


@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "accelerators", "waits"),
    [
        ("riscv32", [], None),
        ("riscv32", ["gemm"], (0, 0, 0)),
        ("cv32e40p", [], (1, 2, 0)),
        ("riscv32", ["cfu"], None),
        ("vexriscv-full", [], None),
        ("cortex-m7", [], (0, 3, 1)),
        ("cortex-m7", ["qconv2d"], (2, 2, 2)),
    ],
)
def test_layers_and_functions_of_a_model(
    name: str, accelerators: list[str], waits: tuple[int, int, int] | None
) -> None:
    platform = load_platform(name)
    if waits is not None:
        platform = slow(platform, *waits)
    profile, stop, trace = profiled(platform, accelerators)
    for phase in stop.phases:
        adds_up(phase)
    assert add_causes(phase.causes for phase in stop.phases) == trace
    for entry in profile.layers:
        adds_up(entry)
        waited = entry.offload.waiting if entry.offload else 0
        assert entry.causes is not None and entry.causes["waited"] == waited
    assert profile.causes is not None and sum(profile.causes.values()) == profile.cycles
    jobs = bool(accelerators) and accelerators != ["cfu"]
    assert jobs == (profile.causes["waited"] > 0)
    assert (name == "vexriscv-full") == (profile.causes["cache"] > 0)
    if waits and waits[1] != waits[2]:
        assert profile.causes["data"] > 0
    ran = {function.name for entry in profile.layers for function in entry.functions}
    assert {entry.layer.function for entry in profile.layers} <= ran


# -- the command -----------------------------------------------------------------------------------


@pytest.mark.costly
def test_the_table_and_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--causes", "--json"):
        with pytest.raises(SystemExit) as done:
            main(["run", "toycar", "-p", "cv32e40p", "--check", "none", option])
        assert done.value.code == 0
    text, document = capsys.readouterr().out.split("\n{", 1)
    run = json.loads("{" + document)
    causes = run["cycles_by_cause"]
    parts = [layer["cycles_by_cause"] for layer in run["layers"]]
    parts.append(run["between"]["cycles_by_cause"])
    assert sum(causes.values()) == run["cycles"]
    assert {cause: sum(part[cause] for part in parts) for cause in causes} == causes
    least = sum(layer["least"]["cycles"] for layer in run["layers"])
    total = [f"{cycles:,}" for cycles in (*causes.values(), run["cycles"], least) if cycles]
    assert any(line.split() == ["total", *total] for line in text.splitlines())
    assert run["layers"][0]["functions"] is None


@pytest.mark.costly
def test_a_device_that_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["run", "toycar", "-p", "host", "--device", "host", "--causes"])
    assert done.value.code == 2
    assert "device host cannot tell what its cycles passed with" in capsys.readouterr().err
