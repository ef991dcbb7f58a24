"""Code translated with fewer calls (device/machine/translation.h) does what it does without."""

from __future__ import annotations

import platform as host
import struct
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import unicorn
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc

import covp.device.machine.counter as counter
import covp.device.machine.execution as execution
import covp.device.machine.inlining as inlining
from covp.chip.platform_file import load_platform
from covp.device.machine.engine import open_engine
from covp.device.machine.watchpoints import Watch
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault

IS_KNOWN = sys.platform == "linux" and host.machine() == "x86_64" and version("unicorn") == "2.1.4"
FLASH, SCRATCH, NOWHERE = 0x08000000, 0x20002000, 0x60000000
CONSTANTS = FLASH + 0x2000  # where the emulator's table of pages has the entry of SCRATCH, too
EDGES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80008000, 0x7FFF7FFF, 0x00FF8081)
VALUES = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFFFFFF))
REGISTERS = [*(f"r{n}" for n in range(13)), "sp", "lr", "xpsr"]
PAIR = Iterator[tuple[VirtualDevice, VirtualDevice]]


@pytest.fixture(scope="module", params=["cortex-m4", "cortex-m33"])
def pair(request: pytest.FixtureRequest) -> PAIR:
    yield from both(request.param)


@pytest.fixture(scope="module")
def riscv_pair() -> PAIR:
    yield from both("riscv32")


def both(name: str) -> PAIR:
    """With inlined calls, and without."""
    with pytest.MonkeyPatch.context() as patch:
        inlined = VirtualDevice(load_platform(name))
        patch.setattr(counter, "INLINING", False)
        plain = VirtualDevice(load_platform(name))
    with inlined, plain:
        assert inlined.core.counter.inlines == IS_KNOWN
        assert not plain.core.counter.inlines
        yield inlined, plain


def wide(high: int, low: int) -> bytes:
    return struct.pack("<HH", high, low)


# Arm DDI0403E A7.7, by hand: the destination, the operands and the accumulator are r0-r7.
def dsp(kind: tuple[int, int], d: int, n: int, m: int, a: int) -> bytes:
    """Fields of an instruction where its template is 0: Rn, Ra or RdLo, Rd or RdHi, Rm."""
    high, low = kind
    if kind in NO_SUM:
        a = 0
    if kind in LONG and a == d:
        a = (d + 1) & 7
    return wide(high if kind in NO_FIRST else high | n, low | a << 12 | d << 8 | m)


EXTENSIONS = [(0xFA2F, 0xF080 | r << 4) for r in range(4)]  # sxtb16, rotated
EXTENSIONS += [(0xFA3F, 0xF080 | r << 4) for r in range(4)]  # uxtb16
NO_FIRST = set(EXTENSIONS)
SUMS = [(0xFB20, x) for x in (0, 0x10)] + [(0xFB40, x) for x in (0, 0x10)]  # smlad(x), smlsd(x)
SUMS += [(0xFB10, x) for x in (0, 0x10, 0x20, 0x30)] + [(0xFB30, 0)]  # smlabb ..., smlawb
SUMS += [(0xFB50, 0x10), (0xFB00, 0)]  # smmlar, mla
DUALS = [(0xFB20, 0xF000), (0xFB20, 0xF010)]  # smuad(x)
OTHERS = [(0xFA20, 0xF080), (0xFA30, 0xF090)]  # sxtab16, uxtab16
OTHERS += [(0xFA90, 0xF000), (0xFA80, 0xF040), (0xFAA0, 0xF080)]  # sadd16, uadd8, sel
OTHERS += [(0xFA80, 0xF080), (0xFA80, 0xF090), (0xFA90, 0xF010)]  # qadd, qdadd, qadd16
OTHERS += [(0xEAC0, 0), (0xEAC0, 0x20)]  # pkhbt, pkhtb
LONG = {(0xFBC0, 0xC0), (0xFBC0, 0xD0)}  # smlald(x)
NO_SUM = {*EXTENSIONS, *DUALS, *OTHERS}

low = st.integers(0, 7)
dsp_line = st.builds(
    dsp, st.sampled_from([*EXTENSIONS, *SUMS, *DUALS, *OTHERS, *LONG]), low, low, low, low
)
adds = st.builds(lambda d, n, m: struct.pack("<H", 0x1800 | m << 6 | n << 3 | d), low, low, low)
q_flag = st.builds(  # mrs, msr APSR_nzcvqg
    lambda reads, n: wide(0xF3EF, 0x8000 | n << 8) if reads else wide(0xF380 | n, 0x8C00),
    st.booleans(),
    low,
)
saturate = st.builds(lambda d, n: wide(0xF300 | n, d << 8 | 7), low, low)  # ssat #8


def access(is_load: bool, size: int, d: int, base: int, offset: int) -> bytes:
    """ldrb.w, ldrh.w, ldr.w and stores: r8 is scratch memory, r9 nothing, r10 flash."""
    return wide(0xF880 | size << 5 | is_load << 4 | base, d << 12 | offset << size)


def accesses(bases: st.SearchStrategy[int]) -> st.SearchStrategy[bytes]:
    return st.builds(access, st.booleans(), st.integers(0, 2), low, bases, st.integers(0, 31))


def conditional(body: bytes, condition: int) -> bytes:
    """it: the one instruction of the body under a condition."""
    return struct.pack("<H", 0xBF08 | condition << 4) + body


def loop(body: bytes, count: int) -> bytes:
    """mov.w r11, #count; body; subs.w r11, #1; bne.w."""
    back = -(len(body) + 4 + 4) // 2
    branch = wide(0xF440 | back >> 11 & 0x3F, 0xA800 | back & 0x7FF)
    return wide(0xF04F, 0x0B00 | count) + body + wide(0xF1BB, 0x0B01) + branch


def blocks(bases: st.SearchStrategy[int]) -> st.SearchStrategy[bytes]:
    constants = st.builds(
        access, st.just(True), st.integers(0, 2), low, st.just(10), st.integers(0, 31)
    )
    one = st.one_of(dsp_line, dsp_line, adds, saturate, q_flag, accesses(bases), constants)
    line = st.one_of(one, st.builds(conditional, one, st.integers(0, 13)))
    straight = st.lists(line, min_size=1, max_size=14).map(b"".join)
    return st.one_of(straight, st.builds(loop, straight, st.integers(1, 40)))


def outcome(device: VirtualDevice, code: bytes, values: list[int]) -> tuple[Any, ...]:
    """Everything that can be seen of a run."""
    device.reset()
    device.write(FLASH, code + b"\x00\xbf")
    device.write(SCRATCH, bytes(256))
    device.write(CONSTANTS, bytes(range(0, 256, 2)))
    for number, value in enumerate([*values, SCRATCH, NOWHERE, CONSTANTS]):
        device.core.write_register(f"r{number}", value)
    device.core.write_register("xpsr", 1 << 24)
    before = device.core.totals
    fault: tuple[Any, ...] = ()
    try:
        device.execute(FLASH, FLASH + len(code))
    except DeviceFault as error:
        fault = (error.kind, error.pc, error.address)
    after = device.core.totals
    return (
        fault,
        {name: device.core.read_register(name) for name in REGISTERS},
        device.read(SCRATCH, 256),
        after.instructions - before.instructions,
        after.cycles - before.cycles,
    )


SETTINGS = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@SETTINGS
@given(code=blocks(st.just(8)), values=st.lists(VALUES, min_size=8, max_size=8))
def test_random_blocks(pair, code: bytes, values: list[int]) -> None:
    inlined, plain = pair
    got = outcome(inlined, code, values)
    assert got == outcome(plain, code, values)
    assert got[0] == ()


@SETTINGS
@given(
    code=blocks(st.sampled_from([8, 8, 8, 9, 10])),
    values=st.lists(VALUES, min_size=8, max_size=8),
    slice=st.sampled_from([1, 5, 1 << 30]),
)
def test_faults_inside_blocks(
    pair, monkeypatch, code: bytes, values: list[int], slice: int
) -> None:
    monkeypatch.setattr(execution, "SLICE", slice)
    inlined, plain = pair
    assert outcome(inlined, code, values) == outcome(plain, code, values)


def test_watchpoints_see_accesses_to_pages_in_turn(pair) -> None:
    """Loads of both pages, whose entry is the same, and a store, with and without a watchpoint."""
    line = access(True, 2, 0, 8, 0) + access(True, 2, 1, 10, 0) + wide(0xEB00, 0x0201)
    code = loop(line + access(False, 2, 2, 8, 0) + wide(0xF1A0, 0x0001), 60)
    seen = []
    for device in pair:
        outcome(device, code, [0] * 8)
        device.reset()
        for number, value in ((8, SCRATCH), (10, CONSTANTS)):
            device.core.write_register(f"r{number}", value)
        device.core.write_register("pc", FLASH)
        stops = []
        for watched in (False, True, False, True):
            device.set_watchpoints([Watch(SCRATCH, 4, False, True)] if watched else [])
            device.set_breakpoints([FLASH + 8])
            for _ in range(20):
                device.run()
                stops.append((device.core.read_register("pc"), device.read(SCRATCH, 4)))
        device.set_watchpoints([])
        device.set_breakpoints([])
        seen.append(stops)
    assert seen[0] == seen[1]
    assert {pc for pc, _ in seen[0]} == {FLASH + 8, FLASH + 16}


def half(value: int, top: int) -> int:
    part = value >> 16 * top & 0xFFFF
    return part - (part >> 15 << 16)


@settings(max_examples=100, deadline=None)
@given(n=VALUES, m=VALUES, a=VALUES, swapped=st.booleans())
@example(n=0x80008000, m=0x80008000, a=0, swapped=False)
@example(n=0x80008000, m=0x80008000, a=0x80000000, swapped=False)
def test_smlad_and_sxtb16_as_the_manual_says(pair, n: int, m: int, a: int, swapped: bool) -> None:
    """DDI0403E A7.7.137. Q is decided after each of both sums, as Unicorn does; the manual's
    sum of three has no other overflow but that of products 2**31, which a negative number undoes.
    """
    inlined, _ = pair
    code = wide(0xFB20 | 1, 3 << 12 | swapped << 4 | 2) + wide(0xFA2F, 0xF480 | 1)
    registers = outcome(inlined, code, [0, n, m, a, 0])[1]
    products = sum(half(n, i) * half(m, i ^ swapped) for i in (0, 1))
    signed = a - (a >> 31 << 32)
    assert registers["r0"] == (products + signed) & 0xFFFFFFFF
    assert registers["xpsr"] >> 27 & 1 == (
        products == 2**31 or not -(2**31) <= products + signed < 2**31
    )
    bytes_ = [(n >> shift & 0xFF ^ 0x80) - 0x80 & 0xFFFF for shift in (0, 16)]
    assert registers["r4"] == bytes_[0] | bytes_[1] << 16


def riscv_access(is_load: bool, d: int, base: int, offset: int) -> bytes:
    """lw, sw: a4 is scratch memory, a5 nothing."""
    if is_load:
        return struct.pack("<I", offset * 4 << 20 | base << 15 | 2 << 12 | d << 7 | 3)
    at = offset * 4
    return struct.pack("<I", at >> 5 << 25 | d << 20 | base << 15 | 2 << 12 | (at & 31) << 7 | 0x23)


@SETTINGS
@given(
    st.lists(
        st.builds(
            riscv_access,
            st.booleans(),
            st.integers(10, 13),
            st.sampled_from([14, 14, 14, 15]),
            st.integers(0, 15),
        ),
        min_size=1,
        max_size=12,
    ).map(b"".join)
)
def test_faults_inside_blocks_on_riscv(riscv_pair, code: bytes) -> None:
    seen = []
    for device in riscv_pair:
        flash, scratch = device.platform.flash.start, device.platform.ram.start + 0x2000
        device.reset()
        device.write(flash, code + bytes(4))
        device.write(scratch, bytes(64))
        for number, value in enumerate((1, 2, 3, 4, scratch, NOWHERE)):
            device.core.write_register(f"a{number}", value)
        before, fault = device.core.totals, None
        try:
            device.execute(flash, flash + len(code))
        except DeviceFault as error:
            fault = (error.kind, error.pc, error.address)
        after = device.core.totals
        registers = [device.core.read_register(f"a{number}") for number in range(6)]
        cost = (after.instructions - before.instructions, after.cycles - before.cycles)
        seen.append((fault, registers, device.read(scratch, 64), cost))
    assert seen[0] == seen[1]


def stopped_at(engine: Uc) -> tuple[int, int]:
    """The pc where a callback at the first of two loads stops another program's engine, and r1."""
    engine.mem_map(FLASH, 4096)
    engine.mem_map(SCRATCH & -4096, 0x4000)
    engine.mem_write(FLASH, struct.pack("<5H", 0xBF00, 0x6801, 0x6842, 0xBF00, 0xE7FE))
    engine.reg_write(unicorn.arm_const.UC_ARM_REG_R0, SCRATCH)
    engine.reg_write(unicorn.arm_const.UC_ARM_REG_R2, 7)
    engine.hook_add(uc.UC_HOOK_MEM_READ, lambda engine, *rest: engine.emu_stop(), None, 1, 0)
    engine.emu_start(FLASH | 1, FLASH + 8)
    return (
        engine.reg_read(unicorn.arm_const.UC_ARM_REG_PC) & ~1,
        engine.reg_read(unicorn.arm_const.UC_ARM_REG_R2),
    )


def test_other_engines_of_the_process_are_left_alone(pair) -> None:
    outcome(pair[0], wide(0xFB20, 0xF000), [0] * 8)
    assert stopped_at(open_engine(pair[0].core.core)) == (FLASH + 2, 7)


def test_another_unicorn_is_left_as_it_is(monkeypatch) -> None:
    monkeypatch.setattr(inlining, "_VERSION", 0x020103)
    with VirtualDevice(load_platform("cortex-m4")) as device:
        assert not device.core.counter.inlines
        assert outcome(device, wide(0xFB20, 0xF000), [0x10002, 0x30004] * 4)[0] == ()
