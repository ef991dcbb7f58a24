"""Waveforms of RTL: their program counter is the virtual device's, their times are the window's."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.device.rtl import recording as fst
from covp.device.rtl.cores import rtl_names
from covp.device.rtl.device import RtlDevice
from covp.device.stop import Stop
from covp.device.wave import Wave
from covp.errors import DeviceError, DeviceFault, UsageError
from tests.cli.conftest import Call, call, small
from tests.conftest import Loaded, load
from tests.device.rtl.conftest import need_rtl

__all__ = ["call", "small"]

CYCLE = 1000  # picoseconds in the file's time
TEXT = """
start:
 li a0, 5
1: addi a0, a0, -1
 sw a0, 0(sp)
 lw a1, 0(sp)
 xor a2, a1, a0
 bnez a0, 1b
 j 2f
 nop
2: nop
end:
 j end
"""

pytestmark = pytest.mark.slow
"""A core is built once more, with its signals."""


@pytest.fixture
def core() -> str:
    need_rtl("picorv32")
    return "picorv32"


def loaded(core: str, text: str = TEXT) -> Loaded:
    return load(core, text, device=RtlDevice(load_platform(core)))  # type: ignore[arg-type]


def recorded(core: str, wave: Wave, text: str = TEXT) -> Stop:
    made = loaded(core, text)
    with made.device as device, device.recording(wave) as recording:  # type: ignore[attr-defined]
        stop = made.run()
        assert recording.recorded is None
    return stop


def stepped(core: str, text: str = TEXT) -> list[int]:
    """The program counters of the virtual device, one instruction after the other."""
    made, found = load(core, text), []
    with made.device as device:
        device.core.write_register("sp", device.platform.ram.start + device.platform.stack_bytes)
        device.core.write_register("pc", made.labels["start"])
        while (pc := device.core.read_register("pc")) != made.labels["end"]:
            found.append(pc)
            device.step()
    return found


def changes(file: Path, *names: str) -> Iterator[tuple[int, dict[str, int]]]:
    """Each time in a VCD file, and the values then of signals of the top module."""
    lines = iter(file.read_text().splitlines())
    codes: dict[str, str] = {}
    for line in lines:
        match line.split():
            case ["$var", _, _, code, name, *_] if name in names and name not in codes.values():
                codes[code] = name
            case ["$enddefinitions", *_]:
                break
    values: dict[str, int] = {}
    times = [line for line in lines if line]
    places = [i for i, line in enumerate(times) if line.startswith("#")]
    for start, end in pairwise([*places, len(times)]):
        for line in times[start + 1 : end]:
            value, code = line[1:].split() if line[0] == "b" else (line[0], line[1:])
            if code.strip() in codes:
                values[codes[code.strip()]] = int(value, 2)
        yield int(times[start][1:]), dict(values)


def retired(file: Path) -> list[int]:
    """The program counters of the instructions that retire, cycle by cycle."""
    samples = [
        values for time, values in changes(file, "retire_o", "retire_pc_o") if not time % CYCLE
    ]
    return [values["retire_pc_o"] for values in samples if values["retire_o"]]


def check(core: str, file: Path) -> None:
    plain = loaded(core)
    with plain.device:
        expected = plain.run()
    stop = recorded(core, Wave(file))
    assert (stop.cycles, stop.instructions) == (expected.cycles, expected.instructions)
    times = [time for time, _ in changes(file)]
    half = CYCLE // 2
    assert times == list(range(0, (stop.cycles or 0) * CYCLE, half))
    assert retired(file) == stepped(core)


def test_the_program_counter_is_that_of_single_steps(core, tmp_path):
    check(core, tmp_path / "out.vcd")


@pytest.mark.parametrize("name", rtl_names())
def test_all_cores(name, tmp_path):
    need_rtl(name)
    check(name, tmp_path / "out.vcd")


def test_a_window_is_a_part_of_the_whole(core, tmp_path):
    whole, part = tmp_path / "whole.vcd", tmp_path / "part.vcd"
    recorded(core, Wave(whole))
    recorded(core, Wave(part, 20, 50))
    names = ("retire_o", "retire_pc_o", "data_req_o", "sp_o")
    inside = [(t, v) for t, v in changes(whole, *names) if 20 * CYCLE <= t < 50 * CYCLE]
    assert list(changes(part, *names)) == inside
    assert len(inside) == 2 * 30
    assert {*os.listdir(tmp_path)} == {"whole.vcd", "part.vcd"}


def unpacked(data: bytes) -> bytes:
    """An LZ4 block's content."""
    made, place = bytearray(), 0

    def length(nibble: int) -> int:
        nonlocal place
        more = nibble == 15
        while more:
            nibble += data[place]
            more = data[place] == 255
            place += 1
        return nibble

    while True:
        token = data[place]
        place += 1
        literals = length(token >> 4)
        made += data[place : place + literals]
        place += literals
        if place == len(data):
            return bytes(made)
        offset = int.from_bytes(data[place : place + 2], "little")
        place += 2
        for _ in range(length(token & 15) + 4):
            made.append(made[-offset])


def test_an_fst_file(core, tmp_path):
    """Its window, and the signals' names, from its blocks; all values where fst2vcd is there."""
    file, text = tmp_path / "out.fst", tmp_path / "out.vcd"
    recorded(core, Wave(file, 20, 50))
    assert fst.is_whole(file)
    found = {kind: file.read_bytes()[at : at + size] for kind, at, size in fst.blocks(file)}
    header = found[fst.HEADER]
    start, end = (int.from_bytes(header[i : i + 8], "big") for i in (0, 8))
    assert (start, end) == (20 * CYCLE, 50 * CYCLE - CYCLE // 2)
    names = found[6]  # packed by LZ4
    assert int.from_bytes(names[:8], "big") == len(unpacked(names[8:]))
    assert b"retire_pc_o" in unpacked(names[8:])
    file.write_bytes(file.read_bytes()[:-1])
    assert not fst.is_whole(file)
    recorded(core, Wave(file))
    recorded(core, Wave(text))
    if shutil.which("fst2vcd"):
        again = tmp_path / "again.vcd"
        subprocess.run(["fst2vcd", "-f", file, "-o", again], check=True)
        names = ("retire_o", "retire_pc_o", "data_wdata_o", "ra_o", "mem_state")
        assert list(changes(again, *names)) == list(changes(text, *names))


def test_a_fault_leaves_its_cycles_and_an_interruption_nothing(core, tmp_path):
    file = tmp_path / "out.vcd"
    with pytest.raises(DeviceFault, match="unmapped read"):
        recorded(core, Wave(file), TEXT.replace("2: nop", "2: lw a0, 0(zero)"))
    assert retired(file)[:5] == stepped(core)[:5]
    file.unlink()
    made = loaded(core)
    recording = made.device.recording(Wave(file))  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt), made.device, recording:
        made.run()
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)


def test_what_cannot_be_recorded(core, tmp_path):
    file = tmp_path / "out.vcd"
    file.write_text("older")
    with pytest.raises(UsageError, match=r"begins at cycle 5,000, and the run has \d+ cycles"):
        recorded(core, Wave(file, 5000, 6000))
    assert file.read_text() == "older"
    for place, reason in (
        (tmp_path / "no" / "out.vcd", "No such file"),
        (tmp_path / "d.vcd", "not"),
    ):
        (tmp_path / "d.vcd").mkdir(exist_ok=True)
        with pytest.raises(UsageError, match=f"cannot be written: .*{reason}"):
            recorded(core, Wave(place))
    for window in ((3, 3), (-1, 5)):
        with pytest.raises(UsageError):
            Wave(file, *window)
    with pytest.raises(UsageError, match=r"a \.fst or a \.vcd"):
        Wave(tmp_path / "out.txt")
    assert {*os.listdir(tmp_path)} == {"out.vcd", "d.vcd"}


def test_a_full_disk(core, tmp_path):
    for name in ("out.fst", "out.vcd"):
        recorded(core, Wave(tmp_path / name))  # the library is there
        (tmp_path / name).unlink()
        made, limits = loaded(core), resource.getrlimit(resource.RLIMIT_FSIZE)
        recording = made.device.recording(Wave(tmp_path / name))  # type: ignore[attr-defined]
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
            with pytest.raises(DeviceError, match="is the disk full"), made.device, recording:
                made.run()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not os.listdir(tmp_path)


def test_of_one_layer_from_the_command_line(core, call: Call, small: Path, tmp_path):
    """Its instructions and cycles are the profile's."""
    file = tmp_path / "out.vcd"
    run = ("run", small, "-p", core, "--device", "rtl", "--json")
    plain = call(*run).document
    done = call(*run, "--wave", file, "--wave-layer", 2)
    layer = done.document["layers"][1]
    assert done.document["layers"] == plain["layers"]
    assert f"of {layer['cycles']:,} of layer 2" in done.err
    times = [time for time, _ in changes(file)]
    assert times == list(range(0, layer["cycles"] * CYCLE, CYCLE // 2))
    assert len(retired(file)) == layer["instructions"]


def test_refusals_of_the_command_line(core, call: Call, small: Path, tmp_path):
    file = tmp_path / "out.vcd"
    run = ("run", small, "-p", core)
    rtl = (*run, "--device", "rtl")
    for reason, *options in (
        ("has no signals to record", *run, "--wave", file),
        ("layer 1: small has the layers 0, 2", *rtl, "--wave", file, "--wave-layer", 1),
        ("give FROM:TO", *rtl, "--wave", file, "--wave-cycles", "7"),
        ("needs --wave FILE", *rtl, "--wave-layer", 0),
    ):
        assert reason in call(*options).refusal
    assert not os.listdir(tmp_path)
