"""A unit that moves memory in bursts of AXI4: its bytes, its cycles, and the rules of the bus."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.accelerator import Accelerator, Job, UnitRtl, number, result, tensor
from covp.accelerator.rtl.unit import RtlUnit
from covp.accelerator.rtl.verilog import unit_verilog
from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, UsageError
from covp.hardware.job_unit import ERRORS

BASE, RAM = 0x70000000, 0x80000000
VERILOG = Path(__file__).parent / "units" / "copier.v"
N, INPUT, OUTPUT = 0x10, 0x14, 0x18
COPIES = Job(
    tensor("INPUT", "int64", lambda job: job.N // 8),
    result("OUTPUT", "int64", lambda job: job.N // 8),
    number("N", 8, 1 << 16),
)


class Copier(Accelerator):
    """Copies."""

    name = "copier"
    operators = ("RESHAPE",)
    job = COPIES
    rtl = UnitRtl(ties={"test_mode": 0}, memory="axi4:m_", registers="axi4-lite:s_")

    def compute(self, job: Any) -> Any:
        return job.INPUT


def make(
    folder: Path, text: str | None = None, unit: type[Copier] = Copier, mode: str = "fast"
) -> RtlUnit:
    """Return the unit, of the Verilog as it is or of another text."""
    folder.mkdir(exist_ok=True)
    (folder / "copier.v").write_text(VERILOG.read_text() if text is None else text)
    files = unit_verilog("copier", COPIES, "axi4-lite", "axi4")
    (folder / "copier_registers.v").write_text(files["copier_registers.v"])
    made = unit({"rtl": str(folder / "copier.v"), "rtl_mode": mode}).make_peripheral()
    assert isinstance(made, RtlUnit)
    return made


@pytest.fixture
def device() -> Iterator[VirtualDevice]:
    with VirtualDevice(load_platform("riscv32")) as device:
        yield device


def copy(device: VirtualDevice, source: int, target: int, size: int) -> int:
    """Run a job to its end; return STATUS.ERROR."""
    for offset, value in ((N, size), (INPUT, source), (OUTPUT, target), (0, 1)):
        device.board.write_bus(BASE + offset, value.to_bytes(4, "little"))
    status = 1
    while status & 1:
        status = int.from_bytes(device.board.read_bus(BASE + 4, 4), "little")
    assert status & 3 == 2
    return status >> 8


@pytest.mark.costly
@pytest.mark.parametrize("stalls", [0, 1, 77])
def test_bursts_have_the_bytes_and_cycles_of_the_bus(
    device: VirtualDevice, tmp_path: Path, stalls: int
) -> None:
    unit = make(tmp_path / "unit")
    device.attach(unit, BASE, "copier")
    unit.stalls = stalls
    rng = np.random.default_rng(0)
    for size, source, target in ((8, 0, 8), (128, 0x100, 0x1000), (4104, 0xFF8, 0x3FF0)):
        data = rng.integers(0, 256, size, np.uint8)
        device.write(RAM + source, data.tobytes())
        assert copy(device, RAM + source, RAM + target, size) == 0
        assert bytes(device.read(RAM + target, size)) == data.tobytes()
        record = unit.jobs[-1]
        assert (record.traffic.read, record.traffic.written) == (size, size)
        bursts = 0
        left, at, to = size, source, target
        while left:
            step = min(128, left, 4096 - at % 4096, 4096 - to % 4096)
            left, at, to, bursts = left - step, at + step, to + step, bursts + 1
        # a cycle for each beat, for both requests of a burst and the answer of its stores; and
        # for the check of the registers, the begin of the job and its end
        due = 2 * size // 8 + 3 * bursts + 3
        assert record.timing.cycles == due if not stalls else record.timing.cycles > due


@pytest.mark.costly
def test_while_it_works_status_and_memory_are_the_rtls(
    device: VirtualDevice, tmp_path: Path
) -> None:
    unit = make(tmp_path / "unit", mode="exact")
    device.attach(unit, BASE, "copier", 3)
    board, size = device.board, 512
    data = (np.arange(size) % 255 + 1).astype(np.uint8)
    device.write(RAM, data.tobytes())
    device.write(RAM + 0x1000, bytes(size))

    def status() -> int:
        return int.from_bytes(board.read_bus(BASE + 4, 4), "little")

    for offset, value in ((N, size), (INPUT, RAM), (OUTPUT, RAM + 0x1000), (8, 1), (0, 1)):
        board.write_bus(BASE + offset, value.to_bytes(4, "little"))
    state = device.abilities.state
    assert state is not None
    with pytest.raises(AcceleratorError, match="between two jobs"):
        state.save_state()
    began, seen = device.clock.now, []
    while status() == 1:
        done = int(np.argmin(device.board.bus.view(RAM + 0x1000, size) == data))
        seen.append((device.clock.now - began, done, unit.interrupt.level))
    assert status() == 2 and unit.interrupt.level
    assert [done % 8 for _, done, _ in seen] == [0] * len(seen)
    assert {0, 128, 256, 384} <= {done // 128 * 128 for _, done, _ in seen}
    assert not any(level for _, _, level in seen)
    record = unit.jobs[-1]
    assert record.timing.cycles == 2 * size // 8 + 3 * 4 + 3
    assert device.clock.now - began >= record.timing.cycles > seen[-1][0] - 8
    board.write_bus(BASE + 8, (3).to_bytes(4, "little"))
    assert not unit.interrupt.level
    saved, jobs = state.save_state(), len(unit.jobs)
    assert copy(device, RAM, RAM + 0x2000, 64) == 0
    state.load_state(saved)
    assert len(unit.jobs) == jobs and device.read(RAM + 0x2000, 64) == bytes(64)
    assert copy(device, RAM, RAM + 0x2000, 64) == 0
    assert unit.jobs[-1].timing.cycles == 2 * 8 + 3 + 3
    assert copy(device, RAM, 0x10000000, 64) == ERRORS["address"]


@pytest.mark.costly
@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_a_store_after_the_end_is_found(device: VirtualDevice, tmp_path: Path, mode: str) -> None:
    old = "STORE: if (M_WREADY) begin\n"
    assert VERILOG.read_text().count(old) == 1
    early = f"{old} if (beat == 0 && left == 8 * beats) {{over, error}} <= {{1'b1, 8'd0}};\n"
    unit = make(tmp_path / "unit", VERILOG.read_text().replace(old, early), mode=mode)
    device.attach(unit, BASE, "copier")
    with pytest.raises(AcceleratorError, match="stores after its irq is up"):
        for _ in range(2):  # beside the core the next access shows it
            copy(device, RAM, RAM + 0x1000, 128)


@pytest.mark.slow
def test_two_units_have_memories_of_their_own(device: VirtualDevice, tmp_path: Path) -> None:
    for place, name in ((BASE, "one"), (BASE + 0x1000, "two")):
        device.attach(make(tmp_path / "unit"), place, name)
    device.board.write_bus(BASE + N, (64).to_bytes(4, "little"))
    assert device.board.read_bus(BASE + 0x1000 + N, 4) == bytes(4)


@pytest.mark.costly
def test_a_burst_across_4_kib_is_found(device: VirtualDevice, tmp_path: Path) -> None:
    text = VERILOG.read_text().replace("first < to_border_from ? first : to_border_from", "first")
    device.attach(make(tmp_path / "unit", text), BASE, "copier")
    assert copy(device, RAM + 0xFC0, RAM + 0x2000, 64) == 0
    with pytest.raises(AcceleratorError, match=r"burst of 16 beats at 0x80000fc8 crosses .* 4"):
        copy(device, RAM + 0xFC8, RAM + 0x2000, 128)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("beat + 1 == beats[4:0]", "beat + 2 == beats[4:0]", "WLAST is 1 in a beat"),
        ("M_AWSIZE = 3'd3", "M_AWSIZE = 3'd2", "WSTRB 0xff at 0x80001000 has lanes"),
        ("M_ARSIZE = 3'd3", "M_ARSIZE = 3'd4", "a read of 16 bytes a beat on a port of 8"),
        ("if (M_WLAST) state <= WAIT", "if (M_WLAST) state <= ASK", "not over|WLAST|stores after"),
    ],
)
def test_other_rules_of_the_bus(
    device: VirtualDevice, tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert VERILOG.read_text().count(old) == 1
    device.attach(make(tmp_path / "unit", VERILOG.read_text().replace(old, new)), BASE, "copier")
    with pytest.raises(AcceleratorError, match=message):
        copy(device, RAM, RAM + 0x1000, 32)


def test_addresses_without_memory_are_errors_of_the_bus(
    device: VirtualDevice, tmp_path: Path
) -> None:
    unit = make(tmp_path / "unit")
    device.attach(unit, BASE, "copier")
    assert copy(device, 0x10000000, RAM, 64) == ERRORS["address"]
    assert copy(device, RAM, 0x10000000, 64) == ERRORS["address"]
    flash = device.platform.flash.start
    assert copy(device, RAM, flash, 64) == ERRORS["address"], "stores to flash"
    assert "address" in unit.refusal
    assert copy(device, RAM, RAM + 0x100, 7) == ERRORS["range"], "less than N's least"
    assert copy(device, RAM, RAM + 0x100, 0) == ERRORS["size"]
    assert copy(device, RAM + 4, RAM + 0x100, 64) == ERRORS["alignment"]
    assert copy(device, flash, RAM, 64) == 0


@pytest.mark.costly
def test_a_saved_state_is_the_whole_unit(device: VirtualDevice, tmp_path: Path) -> None:
    text = VERILOG.read_text().replace("M_WDATA = buffer[beat[3:0]]", "M_WDATA = jobs").replace(
        "    reg         failed;", "    reg [63:0] jobs; initial jobs = 0; reg failed;"
    ).replace("IDLE: if (go) begin", "IDLE: if (go) begin jobs <= jobs + 1;")  # fmt: skip
    device.attach(make(tmp_path / "unit", text), BASE, "copier")

    def run() -> int:
        copy(device, RAM, RAM + 0x100, 8)
        return int.from_bytes(device.read(RAM + 0x100, 8), "little")

    assert [run(), run()] == [1, 2]
    state = device.abilities.state
    assert state is not None
    saved = state.save_state()
    assert [run(), run()] == [3, 4]
    state.load_state(saved)
    assert run() == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("input             aclk,", "input xclk, wire aclk = xclk,", "cannot be translated|clock"),
        ("output            interrupt,", "output ready_o,", "has no interrupt"),
        ("M_RREADY,", "M_RREADY_X,", "no memory port whose names begin with m_: AXI4"),
        ("input             test_mode", "input test_mode, input spare", "drives its input spare"),
        ("module copier ", "module copier2 ", "its modules are copier2, none named copier|^$"),
    ],
)  # fmt: skip
def test_ports_that_are_not_understood(
    device: VirtualDevice, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = VERILOG.read_text().replace(old, new)
    if "copier2" in new:
        text += "\nmodule other; endmodule\n"
        message = "its modules are copier2, other, none named copier"
    if "xclk" in new:
        text = VERILOG.read_text().replace("aclk", "tick")
        message = "has no clock"
    if "ready_o" in new:
        text = text.replace(".irq(interrupt)", ".irq(ready_o)")
    with pytest.raises((AcceleratorError, UsageError), match=message):
        make(tmp_path / "unit", text)


def test_errors_of_verilator_name_file_and_line(tmp_path: Path) -> None:
    text = VERILOG.read_text().replace("reg  [31:0] from, to, left;", "reg [31:0] from, to left;")
    with pytest.raises(Exception, match=r"copier\.v:\d+:\d+: syntax error") as caught:
        make(tmp_path / "unit", text)
    assert "\n" not in str(caught.value)


@pytest.mark.costly
def test_a_parameter_of_the_unit_is_one_of_its_verilog(
    device: VirtualDevice, tmp_path: Path
) -> None:
    class Narrow(Copier):
        rtl = UnitRtl(ties={"test_mode": 0}, memory=":m_", registers=":s_", parameters={"BEATS": 2})

    shutil.rmtree(tmp_path / "unit", ignore_errors=True)
    unit = make(tmp_path / "unit", unit=Narrow)
    device.attach(unit, BASE, "copier")
    assert copy(device, RAM, RAM + 0x1000, 128) == 0
    assert unit.jobs[-1].timing.cycles == 2 * 16 + 3 * 8 + 3


@pytest.mark.costly
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if (go) $finish;", r"\$finish in copier\.v:\d+"),
        ("if (go) $stop;", r"\$stop, or an assertion, in copier\.v:\d+"),
    ],
)
def test_what_the_design_itself_ends_is_an_error_not_the_end_of_the_process(
    device: VirtualDevice,
    tmp_path: Path,
    text: str,
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    old = "    always @(posedge aclk) begin\n        over"
    assert VERILOG.read_text().count(old) == 1
    spoken = f'    always @(posedge aclk) if (go) $display("a job");\n{old}'
    changed = VERILOG.read_text().replace(old, f"    always @(posedge aclk) {text}\n{spoken}")
    device.attach(make(tmp_path / "unit", changed), BASE, "copier")
    with pytest.raises(AcceleratorError, match=message):
        copy(device, RAM, RAM + 0x1000, 32)
    assert capfd.readouterr().out == "", "stdout is for documents"


@pytest.mark.costly
def test_a_combinational_loop_is_an_error(device: VirtualDevice, tmp_path: Path) -> None:
    old = "    always @(posedge aclk) begin\n        over"
    loop = "    wire swing; assign swing = go ? ~swing : 1'b0; wire [31:0] kept = {31'd0, swing};\n"
    changed = VERILOG.read_text().replace(old, loop + old)
    changed = changed.replace("left <= left - 8 * beats", "left <= left - 8 * beats + kept")
    unit = make(tmp_path / "unit", changed)
    device.attach(unit, BASE, "copier")
    with pytest.raises(AcceleratorError, match="converge"):
        copy(device, RAM, RAM + 0x1000, 32)
