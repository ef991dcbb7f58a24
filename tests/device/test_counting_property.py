"""The block counter against single stepping, on generated programs."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unicorn import UcError  # type: ignore[attr-defined]

import covp.device.machine.execution as execution
from covp.chip.platform_file import load_platform
from covp.device.machine.engine import open_engine, reset_core
from covp.device.virtual import VirtualDevice

SCRATCH = {"cortex-m0plus": 0x20002000, "cortex-m4": 0x20002000, "riscv32": 0x80002000}

# Encoded by hand, so that no example waits for an assembler. r0-r3 / a0-a3 are scratch registers,
# r4 / a4 points to scratch memory, r5 / a5 counts loops.


def arm_alu(kind: int, d: int, n: int) -> bytes:
    return struct.pack(
        "<H", (0x1800 | n << 6 | n << 3 | d, 0x4040 | n << 3 | d, 0x4340 | n << 3 | d)[kind % 3]
    )


def arm_memory(kind: int, d: int, offset: int) -> bytes:
    return struct.pack("<H", (0x6820, 0x6020)[kind % 2] | offset << 6 | d)


def arm_wide(d: int, value: int) -> bytes:
    return struct.pack("<HH", 0xF240, d << 8 | value & 0xFF)  # movw


def arm_skip(body: bytes, d: int) -> bytes:
    """if (d != 0) body: cmp d, #0; beq over."""
    return struct.pack("<HH", 0x2800 | d << 8, 0xD000 | (len(body) // 2 - 1) & 0xFF) + body


def arm_loop(body: bytes, count: int) -> bytes:
    """movs r5, #count; body; subs r5, #1; bne."""
    back = -(len(body) + 2 + 4) // 2
    return (
        struct.pack("<H", 0x2500 | count) + body + struct.pack("<HH", 0x3D01, 0xD100 | back & 0xFF)
    )


def riscv_alu(kind: int, d: int, n: int) -> bytes:
    d, n = d + 10, n + 10
    if kind % 3 == 0:
        return struct.pack("<H", 0x8002 | 1 << 12 | d << 7 | n << 2)  # c.add
    if kind % 3 == 1:
        return struct.pack("<I", n << 20 | d << 15 | 4 << 12 | d << 7 | 0x33)  # xor
    return struct.pack("<I", 1 << 25 | n << 20 | d << 15 | d << 7 | 0x33)  # mul


def riscv_memory(kind: int, d: int, offset: int) -> bytes:
    d, base, offset = d + 10, 14, offset * 4
    if kind % 2:
        return struct.pack(
            "<I", (offset >> 5) << 25 | d << 20 | base << 15 | 2 << 12 | (offset & 31) << 7 | 0x23
        )
    return struct.pack("<I", offset << 20 | base << 15 | 2 << 12 | d << 7 | 0x03)


def riscv_wide(d: int, value: int) -> bytes:
    return struct.pack("<I", (value & 0x7FF) << 20 | (d + 10) << 7 | 0x13)  # li


def _branch(rs1: int, not_equal: bool, offset: int) -> bytes:
    bits = (
        (offset >> 12 & 1) << 31
        | (offset >> 5 & 0x3F) << 25
        | (offset >> 1 & 15) << 8
        | (offset >> 11 & 1) << 7
    )
    return struct.pack("<I", bits | rs1 << 15 | int(not_equal) << 12 | 0x63)


def riscv_skip(body: bytes, d: int) -> bytes:
    return _branch(d + 10, False, len(body) + 4) + body


def riscv_loop(body: bytes, count: int) -> bytes:
    back = -(len(body) + 2)
    return (
        struct.pack("<I", count << 20 | 15 << 7 | 0x13)
        + body
        + struct.pack("<H", 0x17FD)  # c.addi a5, -1
        + _branch(15, True, back & 0x1FFF)
    )


MAKERS = {
    "arm": (arm_alu, arm_memory, arm_wide, arm_skip, arm_loop),
    "riscv": (riscv_alu, riscv_memory, riscv_wide, riscv_skip, riscv_loop),
}


def straight(makers, small: bool):
    alu, memory, wide, _, _ = makers
    register = st.integers(0, 3)
    choices = [
        st.builds(alu, st.integers(0, 2), register, register),
        st.builds(memory, st.integers(0, 1), register, st.integers(0, 15)),
    ]
    if not small:
        choices.append(st.builds(wide, register, st.integers(0, 255)))
    return st.lists(st.one_of(choices), max_size=8).map(b"".join)


def programs(platform: str):
    architecture = load_platform(platform).core.architecture
    makers = MAKERS[architecture]
    _, _, _, skip, loop = makers
    line = straight(makers, platform == "cortex-m0plus")
    skipping = st.lists(
        st.one_of(line, st.builds(skip, line.filter(len), st.integers(0, 3))), max_size=4
    ).map(b"".join)
    looping = st.builds(loop, skipping.filter(lambda body: len(body) < 180), st.integers(1, 30))
    return st.lists(st.one_of(skipping, looping), min_size=1, max_size=5).map(b"".join)


def single_step(platform_name: str, code: bytes) -> tuple[list[int], list[int]]:
    """The pc before every instruction, and the registers at the end; no hooks."""
    platform = load_platform(platform_name)
    arm = platform.core.architecture == "arm"
    engine = open_engine(platform.core)
    for region in platform.memory:
        engine.mem_map(region.start, region.bytes)
    reset_core(engine, platform.core, platform.ram.start + 4096)
    base = platform.flash.start
    engine.mem_write(base, code)
    prepare(
        lambda name, value: engine.reg_write(register_number(arm, name), value), arm, platform_name
    )
    pc, trace = base, []
    try:
        while pc != base + len(code):
            trace.append(pc)
            engine.emu_start(pc | arm, base + len(code), count=1)
            pc = engine.reg_read(register_number(arm, "pc")) & ~1
    except UcError as error:  # pragma: no cover - a generated program must not fault
        raise AssertionError(f"{error} at {pc:#x}") from error
    names = [f"r{n}" for n in range(6)] if arm else [f"a{n}" for n in range(6)]
    return trace, [engine.reg_read(register_number(arm, name)) for name in names]


def register_number(arm: bool, name: str) -> int:
    from covp.device.machine.engine import register_ids

    return register_ids("arm" if arm else "riscv")[name]


def prepare(write, arm: bool, platform: str) -> None:
    write("r4" if arm else "a4", SCRATCH[platform])
    write("r0" if arm else "a0", 3)
    write("r2" if arm else "a2", 0x12345)


@pytest.mark.parametrize("platform_name", ["cortex-m4", "cortex-m0plus", "riscv32"])
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_equal_to_single_stepping(platform_name, monkeypatch, data):
    code = data.draw(programs(platform_name))
    platform = load_platform(platform_name)
    arm = platform.core.architecture == "arm"
    trace, registers = single_step(platform_name, code)
    base, end = platform.flash.start, platform.flash.start + len(code)
    monkeypatch.setattr(execution, "SLICE", data.draw(st.sampled_from([1, 3, 17, 1 << 30])))
    with VirtualDevice(platform) as device:
        device.write(base, code)
        prepare(device.core.write_register, arm, platform_name)
        assert device.execute(base, end).instructions == len(trace)
        names = [f"r{n}" for n in range(6)] if arm else [f"a{n}" for n in range(6)]
        assert [device.core.read_register(name) for name in names] == registers
        # stops at places the program passes, several in one run
        for address in memory_of(platform_name):
            device.write(address, bytes(64))
        device.reset()
        prepare(device.core.write_register, arm, platform_name)
        pc, done = base, 0
        for stop in data.draw(st.lists(st.sampled_from(trace), max_size=4)) if trace else []:
            if pc == stop or stop not in trace[done:]:
                continue
            ahead = trace.index(stop, done)
            assert device.execute(pc, stop).instructions == ahead - done
            pc, done = stop, ahead
        if pc != end:
            assert device.execute(pc, end).instructions == len(trace) - done


def memory_of(platform_name: str) -> list[int]:
    return [SCRATCH[platform_name]]
