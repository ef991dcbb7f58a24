"""Verilog with registers of its own and two memory ports, on a board: words, time, errors."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.accelerator import AcceleratorBackend, CCall, RtlPeripheral, UnitRtl
from covp.accelerator.rtl.ports import Port, find_ports
from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, DeviceFault, UsageError
from covp.evaluation import build, run
from covp.graph.attributes import Elementwise
from covp.graph.pattern import Match, Pattern, op
from covp.graph.zoo.builder import GraphBuilder
from covp.runtime.session import Session

BASE, LINE, RAM = 0x70000000, 3, 0x80000000
A, B, TARGET, WORDS, STATE = range(0, 20, 4)
VERILOG = Path(__file__).parent / "units" / "adder.v"
CYCLES = 5
"""Of a word: its loads' addresses, their data, the sum, its store, the answer to that."""
DRIVER = """
#include <stdint.h>
#include <covp_interrupt.h>
#define REGISTERS ((volatile uint32_t *)0x70000000)

void add(const uint32_t *a, const uint32_t *b, uint32_t *sums, uint32_t words)
{
    REGISTERS[0] = (uint32_t)a, REGISTERS[1] = (uint32_t)b, REGISTERS[2] = (uint32_t)sums;
    REGISTERS[3] = words;
    REGISTERS[4] = 1;
    WAIT;
}
"""
POLLS = "while (REGISTERS[4] & 1) {}"
SLEEPS = (
    "do { covp_wake_by_line(3); covp_sleep(); } while (REGISTERS[4] & 1); "
    "REGISTERS[4] = 0; covp_forget_line(3)"
)


class Adder(RtlPeripheral):
    """Adds words."""

    rtl = UnitRtl(sources=("units/adder.v",), interrupt="done", busy="works")


@pytest.fixture
def device() -> Iterator[VirtualDevice]:
    with VirtualDevice(load_platform("riscv32")) as device:
        yield device


def write(device: VirtualDevice, offset: int, value: int) -> None:
    device.board.write_bus(BASE + offset, value.to_bytes(4, "little"))


def read(device: VirtualDevice, offset: int) -> int:
    return int.from_bytes(device.board.read_bus(BASE + offset, 4), "little")


def start(device: VirtualDevice, words: int) -> NDArray[np.uint32]:
    """Let it add; return the sums that are due, at RAM + 0x2000."""
    operands = np.random.default_rng(words).integers(0, 2**32, (2, words), np.uint32)
    for offset, values in zip((0, 0x1000), operands, strict=True):
        device.write(RAM + offset, values.tobytes())
    places = RAM, RAM + 0x1000, RAM + 0x2000
    for offset, value in ((A, places[0]), (B, places[1]), (TARGET, places[2]), (WORDS, words)):
        write(device, offset, value)
    write(device, STATE, 1)
    due: NDArray[np.uint32] = operands[0] + operands[1]
    return due


def sums(device: VirtualDevice, words: int) -> NDArray[np.uint32]:
    return np.frombuffer(device.read(RAM + 0x2000, 4 * words), np.uint32)


def test_ports_of_two_buses_load_and_store(device: VirtualDevice) -> None:
    unit = Adder()
    device.attach(unit, BASE, "adder", LINE)
    for words in (1, 7, 300):
        due = start(device, words)
        began = unit.cycles
        while read(device, STATE) & 1:
            pass
        assert unit.interrupt.level and read(device, WORDS) == 0
        assert np.array_equal(sums(device, words), due)
        assert unit.cycles - began >= CYCLES * words - 2
        write(device, STATE, 0)
        assert not unit.interrupt.level


def ends(device: VirtualDevice, unit: RtlPeripheral, words: int) -> list[tuple[bool, int]]:
    """Return each change of the interrupt and its cycle, from the start of a job on."""
    device.attach(unit, BASE, "adder", LINE)
    seen: list[tuple[bool, int]] = []
    due = start(device, words)
    began = device.clock.now
    unit.interrupt.on_change = lambda level: seen.append((level, device.clock.now - began))
    device.clock.wait_until(began + 20 * words)
    assert np.array_equal(sums(device, words), due)
    return seen


@pytest.mark.parametrize("ratio", [1.0, 2.5])
def test_the_interrupt_comes_in_its_cycle(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where each cycle is a step of its own."""

    class Slow(Adder):
        clock_ratio = ratio

    def seen(words: int) -> list[tuple[bool, int]]:
        with VirtualDevice(load_platform("riscv32")) as device:
            return ends(device, Slow(), words)

    found = {words: seen(words) for words in (1, 20, 900)}
    for name in ("_FIRST", "_MOST"):
        monkeypatch.setattr(f"covp.accelerator.rtl.peripheral.{name}", 1)
    for words, changes in found.items():
        assert changes == seen(words)
        ((level, cycle),) = changes
        assert level and abs(cycle - CYCLES * words * ratio) <= 3 * ratio


@pytest.mark.parametrize("wait", [POLLS, SLEEPS], ids=["polls", "sleeps"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_a_driver_in_c_waits_for_it(platform: str, wait: str) -> None:
    operands = np.random.default_rng(0).integers(0, 2**32, (2, 50), np.uint32)
    with Session(platform) as session:
        assert isinstance(session.device, VirtualDevice)
        session.device.attach(Adder(), BASE, "adder", LINE)
        add = session.load_c(DRIVER.replace("WAIT", wait))["add"]
        a, b, target = (session.tensor(values) for values in (*operands, np.zeros(50, np.uint32)))
        began = session.device.clock.now
        add(a, b, target, 50)
        assert np.array_equal(target.numpy(), operands[0] + operands[1])
        assert CYCLES * 50 < session.device.clock.now - began < CYCLES * 50 + 200


class Sums(AcceleratorBackend):
    """Adds words."""

    name = "adder"
    patterns = (Pattern("add", op("ADD")),)
    peripheral = Adder

    def supports(self, match: Match) -> bool:
        return match.op.output.dtype == np.int32

    def lower(self, match: Match) -> CCall:
        a, b = match.inputs
        return CCall("add", "adder.h", (a, b, match.op.output, match.op.output.size))

    def driver(self, base: int) -> dict[str, str]:
        source = DRIVER.replace("uint32_t *", "int32_t *").replace("volatile int", "volatile uint")
        declared = "void add(const int32_t *, const int32_t *, int32_t *, uint32_t);\n"
        places = {"WAIT": POLLS, "0x70000000": f"{base:#x}", "(uint32_t)": "(uintptr_t)"}
        for old, new in places.items():
            source = source.replace(old, new)
        return {"adder.h": f"#include <stdint.h>\n{declared}", "adder.c": source}


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_an_accelerator_in_two_parts_has_it(platform: str) -> None:
    made = GraphBuilder("sums")
    x, y = (made.input((1, 8, 8, 4), np.int32) for _ in range(2))
    for _ in range(2):
        x = made.add("ADD", x, y, attributes=Elementwise(), dtype=np.int32)
    found = run(build(made.graph(x), platform, [Sums()], schedules=None))
    assert found.matches_reference
    assert [entry.target for entry in found.profile.layers] == ["adder", "adder"]
    least = 2 * 256 * CYCLES
    assert found.profile.cycles is not None and least < found.profile.cycles < least + 300


def test_a_platform_names_it(tmp_path: Path) -> None:
    (tmp_path / "adder.py").write_text(
        "from covp.accelerator import RtlPeripheral, UnitRtl\n\n\n"
        f"class Adder(RtlPeripheral):\n    rtl = UnitRtl(sources=({str(VERILOG)!r},),"
        " interrupt='done', busy='works')\n"
    )
    (tmp_path / "board.yaml").write_text(
        "name: board\ncore: rv32imc\nclock_hz: 100_000_000\nmemory:\n"
        "  - {name: flash, kind: flash, start: 0x20000000, size: 4M}\n"
        "  - {name: ram, kind: ram, start: 0x80000000, size: 1M}\nperipherals:\n"
        "  - {name: adder, model: adder.py:Adder, base: 0x70000000, irq: 3}\n"
    )
    with Session(tmp_path / "board.yaml") as session:
        add = session.load_c(DRIVER.replace("WAIT", SLEEPS))["add"]
        a, b, target = (session.tensor(np.full(9, n, np.uint32)) for n in (5, 6, 0))
        add(a, b, target, 9)
        assert target.numpy().tolist() == 9 * [11]


@pytest.mark.costly
def test_its_clock_stands_still_while_it_does_not_work(tmp_path: Path) -> None:
    class Seen(Adder):
        wave = tmp_path / "adder.vcd"

    with VirtualDevice(load_platform("riscv32")) as device:
        unit = Seen()
        device.attach(unit, BASE, "adder", LINE)
        start(device, 20)
        device.clock.wait_until(device.clock.now + 50_000)
        read(device, STATE)
    del unit, device
    gc.collect()  # closes the file
    text = (tmp_path / "adder.vcd").read_text()
    edges = len(re.findall(r"^#\d+", text, re.M))
    assert 2 * CYCLES * 20 < edges < 1000  # of 100,000


@pytest.mark.costly
def test_a_peripheral_without_memory_and_interrupt_has_the_time_of_the_core(
    device: VirtualDevice,
) -> None:
    class Counter(RtlPeripheral):
        rtl = UnitRtl(sources=("units/counter.v",))

    device.attach(Counter(), BASE, "counter")
    write(device, 0, 1000)
    start = device.clock.now
    for wait in (2, 3, 7, 5000):  # as an instruction of the core takes a cycle itself
        device.clock.wait_until(device.clock.now + wait)
        before = device.clock.now
        assert read(device, 0) == 1000 + before - start
        assert device.clock.now - before == 1


@pytest.mark.costly
def test_a_parameter_and_a_state(device: VirtualDevice) -> None:
    unit = Adder(PLUS=5)
    device.attach(unit, BASE, "adder", LINE)
    write(device, TARGET, 0x1234)
    state = device.abilities.state
    assert state is not None
    saved = state.save_state()
    write(device, TARGET, 0)
    state.load_state(saved)
    assert read(device, TARGET) == 0x1234
    due = start(device, 9)
    while read(device, STATE) & 1:
        pass
    assert np.array_equal(sums(device, 9), due + np.uint32(5))


def test_wrong_use_is_said(device: VirtualDevice) -> None:
    device.attach(Adder(), BASE, "adder", LINE)
    with pytest.raises(DeviceFault, match="adder: read of 1 bytes: only whole words"):
        device.board.read_bus(BASE, 1)
    start(device, 1)
    device.clock.wait_until(device.clock.now + 20)
    write(device, B, 0x60000000)
    write(device, WORDS, 1)
    write(device, STATE, 1)
    text = "the RTL of adder loads 4 bytes at 0x60000000, where there is no memory"
    with pytest.raises(AcceleratorError, match=text):
        device.clock.wait_until(device.clock.now + 50)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("rtl", "text"),
    [
        ({"busy": "work"}, r"has no output work; it has a_req, .*, works"),
        ({"memory": "obi:c_"}, "has no memory port whose names begin with c_"),
        ({"memory": ("obi:a_", "axi4")}, "has no memory port: AXI4"),
        ({"memory": "obi"}, "nothing drives its input b_hready"),
    ],
)
def test_wrong_ports_are_said(rtl: dict[str, str], text: str) -> None:
    class Wrong(RtlPeripheral):
        pass

    Wrong.rtl = UnitRtl(sources=("units/adder.v",), **{"interrupt": "done", **rtl})  # type: ignore[arg-type]
    with pytest.raises(AcceleratorError, match=text):
        Wrong()


def test_wrong_settings_are_said() -> None:
    class Stopped(Adder):
        clock_ratio = 0.0

    class Drawn(Adder):
        wave = Path("adder.png")

    with pytest.raises(UsageError, match=r"Stopped: clock_ratio=0\.0: above 0"):
        Stopped()
    with pytest.raises(UsageError, match=r"Drawn: wave=adder\.png: a file \.vcd or \.fst"):
        Drawn()


def test_words_side_by_side_have_ports_of_one_size() -> None:
    """One address for all of them is another kind of port."""
    sizes = {"req": 2, "add": 64, "wen": 2, "be": 8, "data": 64}
    inputs = {"gnt": 2, "r_valid": 2, "r_data": 64}
    control = {"req": 1, "add": 32, "wen": 1, "data": 32}

    def find(**changed: int) -> dict[str, str]:
        ports = [Port("clk_i", "in", 1, "clk_i")]
        for prefix, signals, direction in (
            ("tcdm_", sizes | changed, "out"),
            ("tcdm_", inputs, "in"),
            ("periph_", control, "in"),
            ("periph_", {"r_valid": 1, "r_data": 32}, "out"),
        ):
            ports += [Port(prefix + s, direction, n, prefix + s) for s, n in signals.items()]
        return find_ports("unit.sv: module unit", ports, UnitRtl(), has_jobs=False)

    assert "constexpr uint32_t WORD = 8" in find()["memory_ports.h"]
    with pytest.raises(AcceleratorError, match="its port tcdm_add has 32 bits; 2 words need 64"):
        find(add=32)
