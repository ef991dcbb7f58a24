"""The RISC-V debug module under the real OpenOCD with covp's configuration file, and by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.device.debug.riscv_debug import DebugModule, Dtm
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice

from .jtag_bench import jtag_openocd
from .openocd_bench import OpenOcd
from .sum_program import Program, places, sum_program

RAM, FLASH = 0x80000000, 0x20000000
CODE, DATA, RESULT = places(RAM)
NAMES = (
    *("ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", *(f"a{n}" for n in range(8))),
    *(f"s{n}" for n in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
)

Bench = tuple[DebugTarget, OpenOcd]


@pytest.fixture(scope="module")
def riscv() -> Iterator[Bench]:
    with jtag_openocd("riscv32") as bench:
        yield bench


@pytest.fixture
def halted(riscv: Bench) -> OpenOcd:
    riscv[1]("halt; rbp all")
    return riscv[1]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return sum_program("riscv32", tmp_path_factory.mktemp("riscv"))


# -- the real OpenOCD ----------------------------------------------------------------------------


def test_the_hart_is_examined(halted: OpenOcd) -> None:
    assert "riscv.cpu tap/device found: 0x10001fff" in halted.log
    assert "XLEN=32, misa=0x40001104" in halted.log  # RV32IMC, privileged spec 3.1.1
    assert not [line for line in halted.log.splitlines() if line.startswith("Error")]


def test_memory_in_all_widths(riscv: Bench, halted: OpenOcd) -> None:
    halted(f"mww {RAM + 0x100} 0x11223344; mww {RAM + 0x104} 0x55667788")
    halted(f"mwb {RAM + 0x101} 0xAA; mwb {RAM + 0x102} 0xBB; mwh {RAM + 0x106} 0xCCDD")
    assert riscv[0].device.read(RAM + 0x100, 8).hex() == "44aabb118877ddcc"
    assert halted(f"mdw {RAM + 0x100} 2") == "0x80000100: 11bbaa44 ccdd7788"
    assert halted(f"mdh {RAM + 0x102}") == "0x80000102: 11bb"
    assert halted(f"mdb {RAM + 0x101} 3") == "0x80000101: aa bb 11"


@pytest.mark.parametrize("start, size", [(RAM + 0x1000, 8192), (RAM + 0x1001, 515), (FLASH, 64)])
def test_images(riscv: Bench, halted: OpenOcd, tmp_path: Path, start: int, size: int) -> None:
    given, taken = tmp_path / "given", tmp_path / "taken"
    given.write_bytes(random.Random(size).randbytes(size))
    assert f"{size} bytes written" in halted(f"load_image {given} {start}")
    assert riscv[0].read_memory(start, size) == given.read_bytes()
    halted(f"dump_image {taken} {start} {size}")
    assert taken.read_bytes() == given.read_bytes()


def test_an_access_to_nothing_fails_and_the_next_one_works(halted: OpenOcd) -> None:
    assert halted.attempt("read_memory 0x50000000 32 1")[0]
    assert halted.attempt("write_memory 0x50000000 32 {1}")[0]
    halted(f"mww {RAM} 0x600D")
    assert halted.words(RAM, 1) == [0x600D]


def test_every_register(riscv: Bench, halted: OpenOcd) -> None:
    target = riscv[0]
    for number, name in enumerate(NAMES):
        halted(f"set_reg {{{name} {0x40000000 + 0x1000 * number}}}")
    read = [target.read_register("s0" if name == "fp" else name) for name in NAMES]
    assert read == [0x40000000 + 0x1000 * number for number in range(len(NAMES))]
    assert [halted.register(name) for name in NAMES] == read
    assert halted.register("zero") == 0
    halted(f"set_reg {{pc {CODE}}}")
    assert target.read_register("pc") == halted.register("pc") == halted.register("dpc") == CODE


def test_control_and_status_registers(halted: OpenOcd, program: Program) -> None:
    program.load(halted)
    halted(f"set_reg {{pc {program.labels['start']}}}")
    halted("set_reg {mscratch 0x12345678}; set_reg {mtvec 0x80000100}")
    assert halted.register("mscratch") == 0x12345678
    assert halted.register("mtvec") == 0x80000100
    halted("step")
    assert halted.register("misa") == 0x40001104
    before = halted.register("mcycle")
    halted("step")
    assert halted.register("mcycle") > before


def test_a_register_that_is_not_there(halted: OpenOcd) -> None:
    """The abstract command ends with an exception, and the next one works."""
    assert halted.attempt("get_reg -force csr1999")[0]
    assert halted.register("a0") == halted.register("a0")


@pytest.mark.parametrize("kind", ["hw", ""])
def test_breakpoint_resume_and_step(halted: OpenOcd, program: Program, kind: str) -> None:
    program.load(halted)
    loop = program.labels["loop"]
    halted(f"mww {DATA} 7 8; bp {loop} 2 {kind}")
    halted(f"bp {program.labels['done']} 2 hw")
    program.run(halted, "start", a1=4)
    for round_ in range(4):
        halted("wait_halt 2000")
        assert (halted.register("pc"), halted.register("a1")) == (loop, 4 - round_)
        # OpenOCD 0.12 steps over a trigger by itself, over an EBREAK that it wrote it does not
        halted("step" if kind else f"rbp {loop}; step; bp {loop} 2")
        assert halted.register("pc") in (loop + 2, loop + 4)  # compressed or not
        assert halted.register("a4") == 7
        halted("resume")
    halted("wait_halt 2000")  # at the end, however busy the machine is
    assert halted.register("a2") == 28 and halted.words(RESULT, 1) == [28]


def test_all_triggers_and_one_too_many(halted: OpenOcd, program: Program) -> None:
    program.load(halted)
    labels = program.labels
    for name in ("start", "loop", "store", "done"):
        halted(f"bp {labels[name]} 2 hw")
    status, text = halted.attempt(f"bp {labels['forever']} 2 hw")
    assert (status and "trigger" in text.lower()) or "resource" in text.lower()
    halted(f"mww {DATA} 1 2")
    halted(f"set_reg {{a1 1}}; set_reg {{pc {labels['start']}}}; rbp {labels['start']}; resume")
    for name in ("loop", "store", "done"):
        halted("wait_halt 2000")
        assert halted.register("pc") == labels[name]
        halted("resume")
    halted("halt")


@pytest.mark.parametrize("access", ["w", "r", "a"])
def test_watchpoint(halted: OpenOcd, program: Program, access: str) -> None:
    """mcontrol with timing 0: before the access (debug spec 5.2.5)."""
    program.load(halted)
    where = DATA + 8 if access == "r" else RESULT
    halted(f"mww {DATA} 5 8; mww {RESULT} 0; wp {where} 4 {access}")
    program.run(halted, "start", a1=4)
    halted("wait_halt 2000")
    assert halted.register("pc") == program.labels["loop" if access == "r" else "store"]
    assert halted.words(RESULT, 1) == [0]
    halted(f"rwp {where}; bp {program.labels['done']} 2 hw; resume; wait_halt 2000")
    assert halted.words(RESULT, 1) == [20]


def test_a_running_hart_is_read_and_halted(halted: OpenOcd, program: Program) -> None:
    program.load(halted)
    halted(f"mww {RESULT} 0 2")
    program.run(halted, "forever", a3=RESULT)
    assert halted("poll; riscv.cpu curstate").endswith("running")
    counts = [halted.words(RESULT + 4, 1)[0] for _ in range(10)]  # over the system bus
    assert counts == sorted(counts)
    assert halted.attempt("get_reg -force a0")[0]  # an abstract command needs a halted hart
    halted("halt")
    assert program.labels["forever"] <= halted.register("pc") < program.labels["bad"]


def test_ebreak_and_fault(halted: OpenOcd, program: Program) -> None:
    labels = program.labels
    program.load(halted)
    program.run(halted, "soft")
    halted("wait_halt 2000")
    assert labels["soft"] < halted.register("pc") <= labels["soft"] + 4
    program.run(halted, "bad")
    halted("wait_halt 2000")
    assert labels["bad"] < halted.register("pc") < labels["soft"]


def test_resets(riscv: Bench, halted: OpenOcd) -> None:
    riscv[0].write_memory(FLASH, bytes.fromhex("01a0"))  # j .
    halted(f"mww {RESULT} 0x600D; set_reg {{pc {CODE}}}; reset halt")
    assert halted.register("pc") == FLASH and halted.words(RESULT, 1) == [0x600D]
    halted("reset run; poll")
    assert halted("riscv.cpu curstate") == "running"
    halted("halt")
    assert halted.register("pc") == FLASH


# -- the module by itself ------------------------------------------------------------------------

DATA0, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND = 0x04, 0x10, 0x11, 0x16, 0x17
SBCS, SBADDRESS0, SBDATA0 = 0x38, 0x39, 0x3C
READ_S0, WRITE_S0 = 0x00221008, 0x00231008  # 32 bits, transfer, GPR 8
OTHER, UNSUPPORTED, EXCEPTION, HALT_RESUME = 7, 2, 3, 4


@pytest.fixture
def module() -> Iterator[DebugModule]:
    with VirtualDevice(load_platform("riscv32")) as device, DebugTarget(device) as target:
        module = DebugModule(target)
        module.write(DMCONTROL, 1)
        yield module


def error(module: DebugModule) -> int:
    """cmderr, cleared."""
    found = module.read(ABSTRACTCS) >> 8 & 7
    module.write(ABSTRACTCS, OTHER << 8)
    return found


def test_abstract_commands(module: DebugModule) -> None:
    module.write(DATA0, 0xCAFE)
    module.write(COMMAND, WRITE_S0)
    assert error(module) == 0 and module.target.read_register("s0") == 0xCAFE
    module.write(DATA0, 0)
    module.write(COMMAND, READ_S0)
    assert error(module) == 0 and module.read(DATA0) == 0xCAFE


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (READ_S0 & ~(7 << 20) | 3 << 20, UNSUPPORTED),  # 64 bits
        (READ_S0 | 1 << 18, UNSUPPORTED),  # postexec: there is no program buffer
        (1 << 24, UNSUPPORTED),  # quick access
        (2 << 24 | READ_S0, UNSUPPORTED),  # access memory
        (0x002207CF, EXCEPTION),  # no such CSR
        (0x0022C123, EXCEPTION),  # no such register at all
    ],
)
def test_abstract_errors(module: DebugModule, command: int, expected: int) -> None:
    """Debug spec 3.6.1 and 3.12.6: cmderr stays, and commands do nothing, until it is cleared."""
    assert module.read(ABSTRACTCS) >> 24 & 0x1F == 0  # progbufsize
    module.write(COMMAND, command)
    assert module.read(ABSTRACTCS) >> 8 & 7 == expected
    module.write(DATA0, 0xCAFE)
    before = module.target.read_register("s0")
    module.write(COMMAND, WRITE_S0)
    assert module.target.read_register("s0") == before
    assert error(module) == expected
    module.write(COMMAND, WRITE_S0)
    assert error(module) == 0 and module.target.read_register("s0") == 0xCAFE


def test_a_running_hart_has_no_registers(module: DebugModule) -> None:
    module.target.write_memory(RAM, bytes.fromhex("01a0"))  # j .
    module.target.write_register("pc", RAM)
    module.write(DMCONTROL, 1 << 30 | 1)
    assert module.read(DMSTATUS) >> 10 & 3 == 3  # allrunning, anyrunning
    module.write(COMMAND, READ_S0)
    assert error(module) == HALT_RESUME
    module.write(DMCONTROL, 1 << 31 | 1)
    assert module.read(DMSTATUS) >> 8 & 3 == 3


def test_system_bus_errors(module: DebugModule) -> None:
    """Debug spec 3.12.18: 2 bad address, 3 alignment, 4 size; an error blocks until cleared."""
    single = 1 << 20
    for setting, address, expected in (
        (2 << 17, 0x50000000, 2),
        (2 << 17, RAM + 2, 3),
        (3 << 17, RAM, 4),
    ):
        module.write(SBCS, single | setting)
        module.write(SBADDRESS0, address)
        assert module.read(SBCS) >> 12 & 7 == expected
        module.write(SBDATA0, 1)
        assert module.target.read_memory(RAM, 4) == bytes(4)
        module.write(SBCS, 7 << 12)
        assert module.read(SBCS) >> 12 & 7 == 0


@settings(max_examples=300, deadline=None)
@given(
    scans=st.lists(
        st.tuples(
            st.sampled_from([0x04, 0x05, 0x10, 0x11, 0x16, 0x17, 0x38, 0x39, 0x3C, 0x40, 0x7F]),
            st.one_of(
                st.integers(0, 0xFFFFFFFF),
                st.integers(0, 0xFFFF).map(lambda number: 0x00220000 | number),
                st.integers(0, 0xFFFF).map(lambda number: 0x00230000 | number),
                st.sampled_from([RAM, FLASH, 1 << 30 | 1, 1 << 31 | 1, 3, 1]),
            ),
            st.integers(0, 3),
        ),
        max_size=30,
    )
)
def test_no_scan_breaks_the_module(shared: Dtm, scans: list[tuple[int, int, int]]) -> None:
    shared.set_instruction(0x11)
    for address, value, operation in scans:
        shared.update(address << 34 | value << 2 | operation)
        result, length = shared.capture()
        assert length == 41 and 0 <= result < 1 << 41
    module = shared._module
    module.write(DMCONTROL, 0)
    module.write(DMCONTROL, 1 << 31 | 1)
    assert module.target.wait(10)
    module.write(ABSTRACTCS, OTHER << 8)
    module.write(DATA0, 0xCAFE)
    module.write(COMMAND, WRITE_S0)
    assert error(module) == 0 and module.target.read_register("s0") == 0xCAFE


@pytest.fixture(scope="module")
def shared() -> Iterator[Dtm]:
    with VirtualDevice(load_platform("riscv32")) as device, DebugTarget(device) as target:
        yield Dtm(DebugModule(target))
