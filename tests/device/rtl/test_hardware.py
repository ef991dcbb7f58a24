"""Python models of hardware on the bus of a real core: time, interrupts, faults."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import covp
from covp.chip.platform_file import load_platform
from covp.device.rtl.cores import rtl_names
from covp.device.rtl.device import RtlDevice
from covp.device.stop import Stop
from covp.errors import AcceleratorError, DeviceFault
from tests.accelerator.test_offload import network
from tests.conftest import assemble
from tests.device.rtl.conftest import need_rtl
from tests.device.test_interrupts import LINE, MODES, Worker

UNIT = 0xF0000000  # VexRiscv takes addresses with bit 31 for I/O
# s0: the model; s1: interrupts taken; results go to the start of the ram, at s4
START = """
    .option norelax
start:
    la t0, handler
    csrw mtvec, t0
    li s0, @unit
    li s4, @ram
    li s1, 0
    li t0, 0x800
    csrs mie, t0
    csrsi mstatus, 8
@body
end:
    j end
    .balign 256
handler: # of all interrupts, also where the core always enters through a table
    .option push
    .option norvc
    .rept 16
    j taken
    .endr
    .option pop
taken:
    addi s1, s1, 1
    li t0, 2
    sw t0, 4(s0)
    csrr s2, mcause
    mret
    .balign 4
"""


BARE = """
start:
    li s0, @unit
    li s4, @ram
@body
end:
    j end
"""


@pytest.fixture
def device(cv32e40p) -> Iterator[RtlDevice]:
    with RtlDevice(load_platform(cv32e40p)) as made:
        made.attach(Worker(), UNIT, "worker", LINE)
        yield made


def run(device: RtlDevice, body: str) -> tuple[Stop, dict[str, int]]:
    """Assemble, load and run a body; its stop, and the addresses of its labels."""
    places = {"@body": body, "@unit": f"{UNIT:#x}", "@ram": f"{device.platform.ram.start:#x}"}
    text = START if device.rtl.interrupts else BARE
    for place, value in places.items():
        text = text.replace(place, value)
    file, base = assemble(device.platform.name, text)
    elf = ELFFile(io.BytesIO(file.read_bytes()))
    code, table = (elf.get_section_by_name(name) for name in (".text", ".symtab"))
    assert isinstance(table, SymbolTableSection) and code is not None
    device.write(base, code.data())
    labels = {s.name: s["st_value"] for s in table.iter_symbols() if s.name}
    device.labels = labels  # type: ignore[attr-defined]
    return device.execute(labels["start"], labels["end"]), labels


def word(device: RtlDevice, number: int) -> int:
    """A result of the body."""
    return int.from_bytes(device.read(device.platform.ram.start + 4 * number, 4), "little")


def taken(device: RtlDevice, mode: str, cycles: int) -> int:
    """By how much more than a job's cycles the core's own counter moves."""
    job = MODES[mode][1]
    run(
        device,
        f" csrci mstatus, 8\n li t1, {cycles}\n csrr a0, mcycle\n {job}\n csrr a1, mcycle\n"
        " sub a1, a1, a0\n sw a1, 0(s4)",
    )
    return word(device, 0) - cycles


@pytest.mark.parametrize("mode", ["polling", "stalled"])
def test_a_job_moves_the_cores_own_counter_by_its_cycles(device, mode):
    more = {taken(device, mode, cycles) for cycles in (10, 11, 1000, 20_000)}
    assert len(more) == 1
    assert 0 <= more.pop() < 20


def test_a_job_of_two_cycles_is_over_before_the_core_asks(device):
    assert taken(device, "stalled", 2) == taken(device, "stalled", 1000)
    assert taken(device, "polling", 2) <= taken(device, "polling", 1000) + 8


def test_sleeping_is_skipped(cv32e40p):
    _sleep(cv32e40p)


@pytest.mark.slow
@pytest.mark.parametrize("core", ["ibex", "ibex-small", "vexriscv-full", "vexriscv-imac"])
def test_all_cores_sleep(core):
    need_rtl(core)
    _sleep(core)


def _sleep(core: str) -> None:
    """An interrupt ends it; a second of sleep costs no time on the host."""
    more = set()
    for cycles in (5000, 10**9):  # both are two instructions of li
        with RtlDevice(load_platform(core)) as device:
            device.attach(Worker(), UNIT, "worker", LINE)
            stop, _ = run(
                device, f" li t1, {cycles}\n sw t1, 0(s0)\n wfi\n nop\n sw s1, 0(s4)\n sw s2, 4(s4)"
            )
            assert (word(device, 0), word(device, 1)) == (1, 0x8000000B)
            assert stop.cycles is not None
            more.add(stop.cycles - cycles)
    assert len(more) == 1
    assert 0 < more.pop() < 120


@pytest.mark.slow
@pytest.mark.parametrize("core", rtl_names())
def test_all_cores_wait_for_a_job(core):
    """N cycles more are N cycles more, as far as the core polls often enough."""
    need_rtl(core)
    totals = []
    for cycles in (10_000, 11_000, 30_000):
        with RtlDevice(load_platform(core)) as device:
            device.attach(Worker(), UNIT, "worker")
            stop, _ = run(device, f" li t1, {cycles}\n {MODES['polling'][1]}")
            totals.append((stop.cycles or 0) - cycles)
    assert len(set(totals)) == 1


def test_a_loop_is_interrupted(device):
    body = " li t1, 500\n sw t1, 0(s0)\n1: addi a0, a0, 1\n beqz s1, 1b\n sw s1, 0(s4)"
    stop, _ = run(device, body)
    assert word(device, 0) == 1
    assert 500 < (stop.cycles or 0) < 560


def test_a_sleep_that_nothing_ends(device):
    with pytest.raises(DeviceFault, match="endless sleep") as caught:
        run(device, " nop\nhere:\n wfi\n nop")
    assert caught.value.pc == device.labels["here"]


@pytest.mark.parametrize(
    ("body", "kind", "address"),
    [
        ("bad: lw a0, 0x40(s0)", "register access", UNIT + 0x40),
        ("lui a1, 0x60000\nbad: sw a0, 4(a1)", "unmapped write", 0x60000004),
        ("lui a1, 0x60000\nbad: lbu a0, 5(a1)", "unmapped read", 0x60000005),
        ("lui a1, 0x20000\nbad: sh a0, 2(a1)", "write to read-only memory", 0x20000002),
        ("la sp, 0x80000000\nbad: sw a0, -4(sp)", "stack overflow", 0x7FFFFFFC),
        ("bad: .word 0xffffffff", "illegal instruction", None),
        ("bad: ebreak", "breakpoint", None),
        ("bad: ecall", "unhandled exception", None),
        ("lui a1, 0x60000\njr a1", "unmapped fetch", None),
    ],
)
def test_faults_are_those_of_the_virtual_device(device, body, kind, address):
    with pytest.raises(DeviceFault) as caught:
        run(device, body)
    assert (caught.value.kind, caught.value.address) == (kind, address)
    assert caught.value.pc == device.labels.get("bad", 0x60000000)
    run(device, " nop")  # the device can be used on


def test_a_model_that_raises(device):
    def broken(value: int) -> None:
        raise ZeroDivisionError("no")

    _, worker = device.peripherals["worker"]
    worker.stall = broken
    with pytest.raises(AcceleratorError, match=r"worker: its model raised ZeroDivisionError"):
        run(device, " sw s0, 8(s0)")


def test_a_loop_without_end(device):
    with pytest.raises(DeviceFault, match="timeout"):
        device.timeout = 0.2
        run(device, "1: j 1b")


@pytest.mark.parametrize("wait", ["poll", "sleep"])
def test_a_longer_job_of_an_accelerator_moves_the_core_by_just_that(cv32e40p, wait):
    graph = network()
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    cycles, jobs = [], 0
    for startup in (5000, 5001, 6000):
        spec = f"qconv2d:startup_cycles={startup},wait={wait}"
        with covp.Session(cv32e40p, device="rtl") as session:
            program = covp.compile(graph, cv32e40p, [spec], allow_slower=True)
            y = session.load(program).run(x)
            np.testing.assert_array_equal(y, program.reference([x])[0])
            profile = session.profile()
            cycles.append(profile.cycles or 0)
            jobs = profile.jobs["qconv2d"]
    assert jobs == 3
    assert [after - cycles[0] for after in cycles[1:]] == [3, 3000]


@pytest.mark.parametrize("core", ["vexriscv-lite", "cv32e40p"])
def test_one_of_two_is_closed_first(core):
    """Verilator's scopes leave a context that the other one may have taken with it."""
    need_rtl(core)
    platform = load_platform(core)
    with RtlDevice(platform) as first:
        with RtlDevice(platform) as second:
            cycles = run(second, " nop\n nop")[0].cycles
        assert run(first, " nop\n nop")[0].cycles == cycles
