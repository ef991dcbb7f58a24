"""Both translators are one machine, and a fault is the same however the core came to it.

Random programs access what they must not. As a whole they do the same with inlined calls and
without. The instruction that faults does so as the last one before a stop and before a breakpoint,
and when it is stepped over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from covp.device.virtual import VirtualDevice
from tests.device.random_accesses import ENTRY, Program, random_program
from tests.device.ways_to_run import (
    Outcome,
    both,
    run,
    run_to,
    run_to_breakpoint,
    size_at,
    step,
)

CORES = ("riscv32", "cv32e40p", "ibex", "cortex-m0plus", "cortex-m4", "cortex-m7", "disco-f746ng")
PAIR = tuple[VirtualDevice, VirtualDevice]


@pytest.fixture(scope="module", params=CORES)
def pair(request: pytest.FixtureRequest) -> Iterator[PAIR]:
    with both(request.param) as devices:
        yield devices


def check(pair: PAIR, seed: int) -> None:
    platform = pair[0].platform
    program = random_program(platform, random.Random(f"{platform.name} {seed}"))
    inlined, plain = (run(device, program) for device in pair)
    assert inlined == plain, seed
    for device in pair:
        at = after_fault(device, program, inlined)
        for way in (run_to(device, program, at), run_to_breakpoint(device, program, at),
                    step(device, program)):  # fmt: skip
            assert way.untimed == inlined.untimed, seed


def after_fault(device: VirtualDevice, program: Program, outcome: Outcome) -> int:
    """The address after the instruction that faults, or after the program."""
    start = device.platform.flash.start + ENTRY
    pc = outcome.fault[1] if outcome.fault else None
    if isinstance(pc, int) and start <= pc < start + len(program.code):
        return pc + size_at(device, pc)
    return start + len(program.code)


def test_random_programs(pair: PAIR) -> None:
    for seed in range(40):
        check(pair, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, 1000))
def test_many_random_programs(pair: PAIR, first: int) -> None:
    for seed in range(first, first + 1000):
        check(pair, seed)


# -- what they found -----------------------------------------------------------------------------


def faults(name: str, code: bytes, registers: dict[str, int]) -> list[tuple[object, ...]]:
    """The faults of a program of one instruction, or one IT block, in each way to run it."""
    program = Program(code, registers)
    with both(name) as devices:
        found = []
        for device in devices:
            end = device.platform.flash.start + ENTRY + len(code)
            found += [run(device, program), run_to(device, program, end), step(device, program),
                      run_to_breakpoint(device, program, end)]  # fmt: skip
    assert all(one.untimed == found[0].untimed for one in found)
    return [one.fault for one in found]


LW, SW, SH = (bytes.fromhex(code) for code in ("03250700", "2320a700", "2310a700"))


@pytest.mark.parametrize("name", ["cv32e40p", "ibex"])
@pytest.mark.parametrize(
    ("code", "address", "first", "kind"),
    [
        (LW, 0x800FFFFE, 0x80100000, "unmapped read"),
        (SW, 0x800FFFFD, 0x80100000, "unmapped write"),
        (SH, 0x800FFFFF, 0x80100000, "unmapped write"),
        (LW, 0x1FFFFFFE, 0x1FFFFFFE, "unmapped read"),
        (SW, 0x1FFFFFFE, 0x1FFFFFFE, "unmapped write"),
        (SW, 0x203FFFFE, 0x203FFFFE, "write to read-only memory"),
    ],
)
def test_a_misaligned_access_that_crosses_into_what_there_is_not(
    name: str, code: bytes, address: int, first: int, kind: str
) -> None:
    """The address is that of the part that faults (RISC-V privileged ISA 20211203, 3.1.16 mtval),
    and memory stays as it is.
    """
    size = 2 if code == SH else 4
    for fault in faults(name, code, {"a4": address, "a0": 0x12345678}):
        assert fault == (kind, 0x20001000, first, size)


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m7"])
@pytest.mark.parametrize("body", ["2060", "c4f80000", "c4e90001", "84e80300", "84ed000a"])
def test_a_conditional_store_that_faults(name: str, body: str) -> None:
    """str, str.w, strd, stm and vstr in an IT block; nothing after it is executed."""
    for after in ("", "0130", "2860"):  # adds, str
        code = bytes.fromhex(("04bf" if after else "08bf") + body + after)
        program = Program(code, {"r4": 0x60000000, "r5": 0x20002000, "xpsr": 0x41000000})
        with both(name) as devices:
            for device in devices:
                start = device.platform.flash.start + ENTRY
                for outcome in (run(device, program), step(device, program),
                                run_to(device, program, start + len(code))):  # fmt: skip
                    assert outcome.fault[:3] == ("unmapped write", start + 2, 0x60000000)
                    assert outcome.registers["r0"] == 0 and outcome.instructions == 1


def test_a_conditional_ldrd_that_is_misaligned() -> None:
    """ittt eq; ldrd r0, r1, [r4]; str r2, [r5]; adds r3, 1: with or without inlined calls."""
    code = bytes.fromhex("02bfd4e900012a600133")
    registers = {"r4": 0x20002002, "r5": 0x20002010, "r2": 7, "xpsr": 0x41000000}
    with both("cortex-m4") as devices:
        outcomes = [run(device, Program(code, registers)) for device in devices]
    assert outcomes[0] == outcomes[1]
    assert outcomes[1].fault == ("misaligned access", 0x08001002, 0x20002002, 4)
    assert [outcomes[1].registers[name] for name in ("r0", "r1", "r3")] == [0, 0, 0]


def test_a_misaligned_access_outside_the_memory_is_misaligned() -> None:
    assert {fault[0] for fault in faults("riscv32", LW, {"a4": 0x60000003})} == {
        "misaligned access"
    }


def test_a_store_to_a_flash_with_a_controller_takes_as_long() -> None:
    """It looks its line up in the data cache."""
    with both("disco-f746ng") as devices:
        program = Program(bytes.fromhex("2060"), {"r4": 0x08004000})
        cycles = [run(device, program).cycles for device in devices]
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize("code", ["2060", "2068", "84ed000b"])  # str, ldr, vstr
def test_an_access_that_crosses_the_end_of_a_cached_memory(code: str) -> None:
    """No line of the cache lies there."""
    address = 0x2004FFFC if code == "84ed000b" else 0x2004FFFE
    for fault in faults("disco-f746ng", bytes.fromhex(code), {"r4": address}):
        assert fault[2] == 0x20050000


FOUND_BY_THE_EMULATOR = {
    "cortex-m4": {"54e8010f": 4, "d4e85f0f": 0},  # ldrex, ldrexh
    # ldr, strh, ldr of two registers, ldm
    "cortex-m0plus": {"6068": 4, "6080": 2, "6059": 4, "07cc": 0},
}


@pytest.mark.parametrize("name", FOUND_BY_THE_EMULATOR)
def test_a_misaligned_access_that_the_emulator_finds_has_an_address(name: str) -> None:
    for code, offset in FOUND_BY_THE_EMULATOR[name].items():
        found = faults(name, bytes.fromhex(code), {"r4": 0x20002001, "r5": 4})
        assert {fault[:1] + fault[2:3] for fault in found} == {
            ("misaligned access", 0x20002001 + offset)
        }, code
