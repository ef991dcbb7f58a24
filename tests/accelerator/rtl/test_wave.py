"""The signals of a unit's RTL in a file: each job is there, and the file is whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from covp.accelerator.registry import find_backend
from covp.device.rtl.recording import is_whole
from covp.errors import DeviceError, UsageError
from tests.accelerator.rtl.unit_project import new_unit


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_unit(tmp_path_factory.mktemp("unit"))


def run(spec: str) -> tuple[int, int]:
    """Run a model in a process of its own; return the unit's jobs and cycles."""
    words = ["run", "toycar", "-p", "riscv32", "-a", spec, "--check", "output", "--json"]
    done = subprocess.run([sys.executable, "-m", "covp", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["matches_reference"]
    busy = sum(layer["offload"]["compute"] for layer in found["layers"] if layer["offload"])
    return found["accelerator_jobs"]["mac8"], busy


@pytest.mark.costly
@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_each_job_is_in_the_file(unit: Path, tmp_path: Path, mode: str) -> None:
    file = tmp_path / "unit.vcd"
    jobs, busy = run(f"{unit}:rtl=yes,rtl_mode={mode},rtl_wave={file}")
    text = file.read_text("utf-8")
    ids = {name: found for found, name in re.findall(r"\$var wire\s+1 (\S+) (\w+) \$end", text)}
    rises: dict[str, list[int]] = {ids["go"]: [], ids["over"]: []}
    time = 0
    for line in text[text.index("$enddefinitions") :].splitlines():
        if line.startswith("#"):
            time = int(line[1:])
        elif line[:1] == "1" and line[1:] in rises and time:
            rises[line[1:]].append(time)
    starts, ends = rises.values()
    assert len(starts) == len(ends) == jobs
    # from the go of the registers, some cycles after START, to their end: ps, a cycle is a ns
    took = sum(end - start for start, end in zip(starts, ends, strict=True)) / 1000
    assert busy - 50 * jobs < took <= busy


@pytest.mark.costly
def test_the_file_is_whole(unit: Path, tmp_path: Path) -> None:
    run(f"{unit}:rtl=yes,rtl_wave={tmp_path / 'unit.fst'}")
    assert is_whole(tmp_path / "unit.fst")


@pytest.mark.costly
def test_what_cannot_be_written_is_one_line(unit: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rtl_wave.* ends in \.fst or \.vcd"):
        find_backend(f"{unit}:rtl=yes,rtl_wave={tmp_path / 'unit.txt'}")
    file = tmp_path / "none" / "unit.vcd"
    model = find_backend(f"{unit}:rtl=yes,rtl_wave={file}").make_peripheral()
    with pytest.raises(DeviceError, match=r"none/unit\.vcd: the waveform cannot be written"):
        model.rtl.begin(())
