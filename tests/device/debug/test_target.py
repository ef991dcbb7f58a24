"""Run control: steps, breakpoints, watchpoints and faults, against plain execution."""

from __future__ import annotations

import threading
import time

import pytest

from covp.device.debug.target import DebugTarget, HaltReason, WatchedAccess
from covp.errors import DeviceError

SUM = {
    "cortex-m4": """
start:
    movs r0, #0
    movs r1, #5
    ldr r3, =0x20000100
loop:
    adds r0, r0, r1
    str r0, [r3]
    ittt eq
    addeq r2, #1
    streq r2, [r3, #4]
    addeq r2, #1
    subs r1, #1
    bne loop
after:
    nop
end:
    b end
    .ltorg
""",
    "riscv32": """
start:
    li a0, 0
    li a1, 5
    lui a3, 0x80000
    addi a3, a3, 0x100
loop:
    add a0, a0, a1
    sw a0, 0(a3)
    addi a1, a1, -1
    csrr a4, minstret
    bnez a1, loop
after:
    nop
end:
    j end
""",
}
RESULT = {"cortex-m4": ("r0", 0x20000100), "riscv32": ("a0", 0x80000100)}
platforms = pytest.mark.parametrize("platform", sorted(SUM))


@pytest.fixture
def loaded(program, platform):
    return program(platform, SUM[platform])


@pytest.fixture
def target(loaded):
    with DebugTarget(loaded.device) as target:
        target.write_register("pc", loaded.labels["start"])
        yield target


def halt_of(target: DebugTarget) -> HaltReason:
    """Let the core run; why it halts."""
    target.resume()
    assert target.wait(5)
    return target.reason


@platforms
def test_steps_go_the_way_of_a_run(program, platform, loaded, target):
    labels = loaded.labels
    wanted = program(platform, SUM[platform]).run()
    before = target.device.instructions
    steps = 0
    while target.read_register("pc") & ~1 != labels["end"] & ~1:
        target.step()
        steps += 1
        assert target.reason is HaltReason.STEP and steps < 200
    assert target.device.instructions - before == wanted.instructions
    assert steps == wanted.instructions
    register, address = RESULT[platform]
    assert target.read_register(register) == 15
    assert target.read_memory(address, 4) == (15).to_bytes(4, "little")


@platforms
def test_breakpoint_in_a_loop_stops_every_time(program, platform, loaded, target):
    labels = loaded.labels
    target.set_breakpoint(labels["loop"])
    target.set_breakpoint(labels["end"])
    sums = []
    while True:
        assert halt_of(target) is HaltReason.BREAKPOINT
        if target.read_register("pc") == labels["end"] & ~1:
            break
        assert target.read_register("pc") == labels["loop"] & ~1
        sums.append(target.read_register(RESULT[platform][0]))
    assert sums == [0, 5, 9, 12, 14]
    # stops change no count
    assert target.device.instructions == program(platform, SUM[platform]).run().instructions


@platforms
def test_breakpoint_anywhere(loaded, target):
    """Every instruction of the program as a breakpoint, in code that has run before."""
    labels = loaded.labels
    target.set_breakpoint(labels["end"])
    target.resume()
    assert target.wait(5)
    trace = []
    target.write_register("pc", labels["start"])
    while target.read_register("pc") != labels["end"] & ~1:
        trace.append(target.read_register("pc"))
        target.step()
    for address in sorted(set(trace[1:])):
        target.write_register("pc", labels["start"])
        target.set_breakpoint(address)
        hits = 0
        while True:
            target.resume()
            assert target.wait(5)
            if target.read_register("pc") == labels["end"] & ~1:
                break
            assert target.read_register("pc") == address
            hits += 1
        assert hits == trace.count(address), hex(address)
        target.clear_breakpoint(address)


@platforms
@pytest.mark.parametrize("access", [WatchedAccess.WRITE, WatchedAccess.ANY])
def test_watched_store_is_not_done_yet(platform, loaded, target, access):
    register, address = RESULT[platform]
    target.set_watchpoint(address, 4, access)
    target.set_breakpoint(loaded.labels["end"])
    seen = []
    while True:
        reason = halt_of(target)
        if reason is HaltReason.BREAKPOINT:
            break
        assert reason is HaltReason.WATCHPOINT
        hit = target.watch_hit
        assert (hit.address, hit.size, hit.is_write) == (address, 4, True)
        seen.append(int.from_bytes(target.read_memory(address, 4), "little"))
    assert seen == [0, 5, 9, 12, 14]
    assert target.read_register(register) == 15


@platforms
def test_watched_load(program, platform):
    text = {
        "cortex-m4": "start:\n ldr r0, =0x20000100\n ldr r1, [r0, #4]!\n nop\nend: b end\n.ltorg",
        "riscv32": "start:\n lui a0, 0x80000\n lw a1, 0x104(a0)\n nop\nend: j end",
    }[platform]
    address = RESULT[platform][1] + 4
    loaded = program(platform, text)
    loaded.device.write(address, b"\1\2\3\4")
    with DebugTarget(loaded.device) as target:
        target.write_register("pc", loaded.labels["start"])
        target.set_watchpoint(address, 1, WatchedAccess.READ)
        target.set_breakpoint(loaded.labels["end"])
        assert halt_of(target) is HaltReason.WATCHPOINT
        first = "r1" if platform == "cortex-m4" else "a1"
        assert target.read_register(first) == 0
        assert halt_of(target) is HaltReason.BREAKPOINT
        assert target.read_register(first) == 0x04030201
        if platform == "cortex-m4":
            assert target.read_register("r0") == address


@platforms
def test_endless_loop_halts_and_goes_on(program, platform):
    text = {
        "cortex-m4": "start:\n movs r0, #0\n movs r1, #1\nloop:\n add r0, r1\n b loop\nend: nop",
        "riscv32": "start:\n li a0, 0\n li a1, 1\nloop:\n add a0, a0, a1\n j loop\nend: nop",
    }[platform]
    loaded = program(platform, text)
    halts = []
    with DebugTarget(loaded.device) as target:
        target.on_halt = lambda: halts.append(target.reason)
        target.write_register("pc", loaded.labels["start"])
        register = RESULT[platform][0]
        target.resume()
        for _ in range(20):  # looks at a running core
            assert not target.is_halted
            before = target.read_register(register)
            deadline = time.monotonic() + 5
            while target.read_register(register) <= before:
                assert time.monotonic() < deadline, "it is halted after an access"
        target.halt()
        assert target.is_halted and target.reason is HaltReason.REQUEST
        stands = target.read_register(register)
        time.sleep(0.01)
        assert target.read_register(register) == stands
        target.write_register({"r0": "r1", "a0": "a1"}[register], 0)
        target.resume()
        target.halt()
        assert target.read_register(register) == stands
        with pytest.raises(DeviceError, match="no register"):
            target.read_register("nonsense")
    assert halts == [HaltReason.REQUEST] * 2
    assert not [t for t in threading.enumerate() if t.name == "covp-core"]


@platforms
def test_fault_and_breakpoint_instruction(program, platform):
    text = {
        "cortex-m4": "start: ldr r0, =0x10\nhere: ldr r1, [r0]\nstop: bkpt #1\nend: b end\n.ltorg",
        "riscv32": "start:\n li a0, 0x10\nhere: lw a1, 0(a0)\nstop: ebreak\nend: j end",
    }[platform]
    loaded = program(platform, text)
    with DebugTarget(loaded.device) as target:
        target.write_register("pc", loaded.labels["start"])
        assert halt_of(target) is HaltReason.FAULT
        assert (
            target.fault is not None
            and target.fault.kind == "unmapped read"
            and target.fault.address == 0x10
        )
        assert target.read_register("pc") == loaded.labels["here"]
        target.write_register("pc", loaded.labels["stop"])
        assert halt_of(target) is HaltReason.EBREAK
        assert target.read_register("pc") == loaded.labels["stop"]


def test_reset_reads_the_vector_table(program):
    loaded = program("cortex-m4", ".word 0x20000800, here + 1\nhere: nop\nstart: nop\nend: b end")
    with DebugTarget(loaded.device) as target:
        assert target.read_register("pc") == loaded.device.platform.flash.start + 8
        assert target.read_register("sp") == 0x20000800
        target.step()
        target.reset(halt=True)
        assert target.reason is HaltReason.RESET
        assert target.read_register("pc") == loaded.device.platform.flash.start + 8


def test_peripherals_are_seen(program):
    loaded = program("cortex-m4", "start: nop\nend: b end")
    with DebugTarget(loaded.device) as target:
        target.write_memory(0xE000ED08, (0x08000000).to_bytes(4, "little"))
        assert target.read_memory(0xE000ED08, 4) == bytes([0, 0, 0, 8])
        with pytest.raises(DeviceError, match="no peripheral"):
            target.read_memory(0x60000000, 4)


@platforms
def test_special_registers(program, platform, target):
    names = {"cortex-m4": ["msp", "primask", "fpscr", "s31"], "riscv32": ["csr0x300", "csr0xf14"]}
    for name in names[platform]:
        target.read_register(name)
    writable = {"cortex-m4": "s31", "riscv32": "csr0x340"}[platform]
    target.write_register(writable, 0x3F800000)
    assert target.read_register(writable) == 0x3F800000
    counter = {"riscv32": "csr0xb02"}.get(platform)
    if counter:
        before = target.read_register(counter)
        target.step()
        assert target.read_register(counter) == before + 1


@platforms
def test_what_goes_on_after_a_look_misses_nothing(loaded, target):
    """The core may be left alone before a breakpoint that it has not reached yet."""
    device, loop = target.device, loaded.labels["loop"]
    target.set_breakpoint(loop)
    assert device.run()
    before = device.instructions
    assert device.run(resumed=False)
    assert device.instructions == before and target.read_register("pc") & ~1 == loop & ~1
    assert device.run(resumed=True)
    assert device.instructions > before


@platforms
def test_a_step_may_heed_watchpoints(platform, target):
    address = RESULT[platform][1]
    target.set_watchpoint(address, 4, WatchedAccess.WRITE)
    target.device.run()
    before = target.read_register("pc")
    for go in (lambda: target.step(watch=True), lambda: target.resume(watch=True)):
        go()
        assert target.wait(5) and target.reason is HaltReason.WATCHPOINT
        assert target.read_register("pc") == before
        assert target.watch_hit.address == address and target.read_memory(address, 4) == bytes(4)
    target.step()
    assert target.reason is HaltReason.STEP and target.read_register("pc") > before
