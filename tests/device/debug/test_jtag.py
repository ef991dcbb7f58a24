"""The JTAG port of a Cortex-M under the real OpenOCD, and the chain by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.device.debug.dap import JtagDp
from covp.device.debug.jtag import NEXT, BypassTap, TapChain, TapState
from covp.device.debug.remote_bitbang import RemoteBitbang
from covp.device.debug.target import DebugTarget
from covp.errors import DeviceError

from .jtag_bench import jtag_openocd
from .openocd_bench import OpenOcd
from .sum_program import Program, places, sum_program

RAM, FLASH = 0x20000000, 0x08000000
CODE, DATA, RESULT = places(RAM)

Bench = tuple[DebugTarget, OpenOcd]


@pytest.fixture(scope="module")
def f7() -> Iterator[Bench]:
    with jtag_openocd("stm32f746") as bench:
        yield bench


@pytest.fixture
def halted(f7: Bench) -> OpenOcd:
    f7[1]("halt; rbp all")
    return f7[1]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return sum_program("stm32f746", tmp_path_factory.mktemp("jtag"))


# -- the real OpenOCD ----------------------------------------------------------------------------


def test_both_ports_of_the_chain_are_found(halted: OpenOcd) -> None:
    assert "stm32f7x.cpu tap/device found: 0x5ba00477" in halted.log
    assert "stm32f7x.bs tap/device found: 0x06449041" in halted.log
    assert "UNEXPECTED" not in halted.log
    assert "Cortex-M7 r0p1 processor detected" in halted.log
    assert "target has 8 breakpoints, 4 watchpoints" in halted.log
    assert not [line for line in halted.log.splitlines() if line.startswith("Error")]


def test_the_access_port_and_its_rom_table(halted: OpenOcd) -> None:
    text = halted("stm32f7x.dap info 0")
    assert "AP # 0x0" in text and "AP ID register 0x74770001" in text
    for part in ("Cortex-M7 PPB ROM", "System Control Space", "Cortex-M7 FPB"):
        assert part in text


def test_memory_in_all_widths(f7: Bench, halted: OpenOcd) -> None:
    device = f7[0].device
    halted(f"mww {RAM + 0x100} 0x11223344; mww {RAM + 0x104} 0x55667788")
    halted(f"mwb {RAM + 0x101} 0xAA; mwb {RAM + 0x102} 0xBB; mwh {RAM + 0x106} 0xCCDD")
    assert device.read(RAM + 0x100, 8).hex() == "44aabb118877ddcc"
    assert halted(f"mdw {RAM + 0x100} 2") == "0x20000100: 11bbaa44 ccdd7788"
    assert halted(f"mdh {RAM + 0x102}") == "0x20000102: 11bb"
    assert halted(f"mdb {RAM + 0x101} 3") == "0x20000101: aa bb 11"


@pytest.mark.parametrize("start, size", [(RAM + 0x1000, 20000), (RAM + 0x13FD, 4097)])
def test_images(f7: Bench, halted: OpenOcd, tmp_path: Path, start: int, size: int) -> None:
    """Across the 1 KB boundary at which the address of an access port wraps."""
    given, taken = tmp_path / "given", tmp_path / "taken"
    given.write_bytes(random.Random(size).randbytes(size))
    assert f"{size} bytes written" in halted(f"load_image {given} {start}")
    assert f7[0].read_memory(start, size) == given.read_bytes()
    halted(f"dump_image {taken} {start} {size}")
    assert taken.read_bytes() == given.read_bytes()


@pytest.mark.costly
def test_flash_of_a_cortex_m4(tmp_path: Path) -> None:
    """Its access port increments 12 bits of the address, not 10; OpenOCD relies on it."""
    image = tmp_path / "image"
    image.write_bytes(random.Random(4).randbytes(9001))
    with jtag_openocd("stm32l4r5") as (target, ocd):
        ocd("[target current] configure -event reset-start {}")  # bitbang has no speed
        ocd("reset halt")
        ocd(f"flash write_image erase {image} {FLASH}; verify_image {image} {FLASH}")
        assert target.read_memory(FLASH, 9001) == image.read_bytes()


def test_an_access_to_nothing_fails_and_the_next_one_works(halted: OpenOcd) -> None:
    assert halted.attempt("read_memory 0x70000000 32 1")[0]
    assert halted.attempt("write_memory 0x70000000 32 {1}")[0]
    assert halted.attempt(f"read_memory {RAM + 0x50000 - 4} 32 2")[0]  # half of it is there
    assert halted.words(RAM + 0x50000 - 4, 1)


def test_registers(f7: Bench, halted: OpenOcd) -> None:
    target = f7[0]
    names = [*(f"r{n}" for n in range(13)), "lr", "msp", "psp"]
    for number, name in enumerate(names):
        target.write_register(name, 0x1000 * number + 0x40000004)
    halted(f"mwh {CODE} 0xE7FE; resume {CODE}; halt")  # b .; they are read when the core halts
    assert [halted.register(name) for name in names] == list(map(target.read_register, names))
    assert "0x20004000" in halted("reg pc force")
    halted("reg r5 0xDEADBEEF; step")  # writes it back
    assert target.read_register("r5") == 0xDEADBEEF


@pytest.mark.parametrize("kind", ["hw", ""])
def test_breakpoint_resume_and_step(halted: OpenOcd, program: Program, kind: str) -> None:
    program.load(halted)
    loop = program.labels["loop"]
    halted(f"mww {DATA} 7 8; bp {loop} 2 {kind}")
    halted(f"bp {program.labels['done']} 2 hw")
    program.run(halted, "start", r1=4)
    for round_ in range(4):
        halted("wait_halt 2000")
        assert (halted.register("pc"), halted.register("r1")) == (loop, 4 - round_)
        halted("step")
        assert (halted.register("pc"), halted.register("r4")) == (loop + 2, 7)
        halted("resume")
    halted("wait_halt 2000")  # at the end, however busy the machine is
    assert halted.register("r2") == 28 and halted.words(RESULT, 1) == [28]


def test_watchpoint(halted: OpenOcd, program: Program) -> None:
    program.load(halted)
    halted(f"mww {DATA} 5 8; mww {RESULT} 0; wp {RESULT} 4 w")
    program.run(halted, "start", r1=4)
    halted("wait_halt 2000")
    assert halted.register("pc") == program.labels["store"] + 2
    assert halted.words(RESULT, 1) == [20]
    halted(f"rwp {RESULT}")


def test_a_running_core_is_read_and_halted(halted: OpenOcd, program: Program) -> None:
    program.load(halted)
    halted(f"mww {RESULT} 0 2")
    program.run(halted, "forever", r3=RESULT)
    assert halted("poll; stm32f7x.cpu curstate").endswith("running")
    counts = [halted.words(RESULT + 4, 1)[0] for _ in range(10)]
    assert counts == sorted(counts)
    halted("halt")
    assert program.labels["forever"] <= halted.register("pc") < program.labels["bad"]


def test_reset_halt(f7: Bench, halted: OpenOcd) -> None:
    f7[0].write_memory(FLASH, (RAM + 0x1000).to_bytes(4, "little") + b"\x09\0\0\x08\xfe\xe7")
    halted("reset halt")
    assert halted.register("pc") == FLASH + 8 and halted.register("msp") == RAM + 0x1000
    halted("reset run; poll")
    assert halted("stm32f7x.cpu curstate") == "running"


# -- the chain by itself -------------------------------------------------------------------------


class ShiftTap:
    """A port whose data register keeps what is shifted in; instruction 0 selects it."""

    def __init__(self, ir_length: int, length: int) -> None:
        self.ir_length, self._length = ir_length, length
        self.value = self.instruction = 0
        self.log: list[tuple[str, int]] = []

    def reset(self) -> None:
        self.log.append(("reset", 0))

    def set_instruction(self, value: int) -> None:
        self.log.append(("instruction", value))

    def capture(self) -> tuple[int, int]:
        return self.value, self._length

    def update(self, value: int) -> None:
        self.log.append(("update", value))
        self.value = value


def chain() -> tuple[TapChain, list[ShiftTap]]:
    taps = [ShiftTap(4, 35), ShiftTap(5, 1), ShiftTap(5, 41)]
    return TapChain(taps), taps


PINS = st.lists(
    st.one_of(
        st.sampled_from(
            ["0R4" * 9, "1R5" * 40, "04" * 36, "0415" * 20, "26" * 5, "260404", "2626"]
        ),
        st.text("01234567R", max_size=20),
        st.sampled_from("Bbrstu"),
    ),
    max_size=30,
).map(lambda pieces: "".join(pieces).encode())


@settings(max_examples=300, deadline=None)
@given(PINS, st.data())
def test_bits_in_bulk_are_the_same_as_edge_by_edge(sent: bytes, data: st.DataObject) -> None:
    """A client's bytes may come in any portions: single ones are never taken as a whole."""
    cut = data.draw(st.integers(0, len(sent)))
    seen = []
    portions = [[sent], [sent[:cut], sent[cut:]], [bytes([byte]) for byte in sent]]
    for parts in portions:
        pins, taps = chain()
        port = RemoteBitbang(pins, lambda: None)
        port._tck, port._srst = 1, 0
        answers = b"".join(port._run(part)[0] for part in parts)
        seen.append((answers, pins.state, [tap.log for tap in taps]))
    assert seen[0] == seen[1] == seen[2]


def test_the_states() -> None:
    """IEEE 1149.1, figure 6-1: five ones reset from anywhere; zeros rest or shift."""
    for state in TapState:
        here: int = state
        for _ in range(5):
            here = NEXT[here][1]
        assert here == TapState.RESET
    resting = {state for state in TapState if NEXT[state][0] == state}
    assert resting == {
        TapState.IDLE,
        TapState.SHIFT_DR,
        TapState.PAUSE_DR,
        TapState.SHIFT_IR,
        TapState.PAUSE_IR,
    }
    walk = [TapState.IDLE]
    for tms in (1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0):
        walk.append(TapState(NEXT[walk[-1]][tms]))
    names = "IDLE SELECT_DR SELECT_IR CAPTURE_IR SHIFT_IR EXIT1_IR PAUSE_IR EXIT2_IR SHIFT_IR "
    names += "EXIT1_IR UPDATE_IR SELECT_DR CAPTURE_DR EXIT1_DR PAUSE_DR EXIT2_DR UPDATE_DR IDLE"
    assert [state.name for state in walk] == names.split()


def test_what_goes_through_the_chain() -> None:
    """The first port is next to TDO: its bits come first, and go to it first."""
    pins, taps = chain()
    for tms in (0, 1, 0, 0):
        pins.clock(tms, 0)
    value = 0x155AA55AA | 1 << 35 | 0x1A5A5A5A5 << 36
    assert pins.shift(value, 77) == 0
    for tms in (1, 1):  # the last bit was shifted in with the others: one clock more
        pins.clock(tms, 0)
    log = [tap.log[-1] for tap in taps]
    whole = value >> 1
    assert log == [
        ("update", whole & (1 << 35) - 1),
        ("update", whole >> 35 & 1),
        ("update", whole >> 36),
    ]


def test_a_port_in_bypass_is_one_bit() -> None:
    tap = BypassTap(5, 0x06449041, 1)
    assert tap.capture() == (0x06449041, 32)
    tap.set_instruction(0b11111)
    assert tap.capture() == (0, 1)
    tap.reset()
    assert tap.capture() == (0x06449041, 32)


class Nothing:
    """Memory where every access fails."""

    def read(self, address: int, size: int) -> bytes:
        raise DeviceError("nothing there")

    def write(self, address: int, data: bytes) -> None:
        raise DeviceError("nothing there")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([8, 10, 11, 14, 15]), st.integers(0, (1 << 35) - 1))),
)
def test_no_scan_breaks_the_debug_port(scans: list[tuple[int, int]]) -> None:
    port = JtagDp(Nothing(), 0x5BA00477, 0x74770001)
    for instruction, value in scans:
        port.set_instruction(instruction)
        captured, length = port.capture()
        assert 0 <= captured < 1 << length
        port.update(value)
    port.set_instruction(8)
    port.update(1 << 3)
    port.set_instruction(10)
    port.update(1 | 1 << 1)  # reads CTRL/STAT: ABORT has cleared what stuck
    assert port.capture()[0] >> 3 & 1 << 5 == 0
