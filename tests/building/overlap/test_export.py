"""Exported projects in which core and units work at the same time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from covp.compilers.toolchain import SourceText
from covp.evaluation import build
from covp.firmware import Project, export_project
from tests.firmware.export.firmware import run_firmware
from tests.firmware.export.project_cases import flat_files
from tests.strict import STRICT, STRICT_GCC

from .graphs import chain

UNITS = ["gemm:size=2,wait=sleep", "qconv2d:depthwise=false,requantize=false,macs_per_cycle=2"]


@pytest.mark.costly
@pytest.mark.parametrize(
    "compiler, platform, unit",
    [
        ("gcc", "cortex-m4", UNITS[0]),
        pytest.param("zig", "riscv32", UNITS[1], marks=pytest.mark.slow),
    ],
)
def test_it_compiles_without_a_warning(compiler: str, platform: str, unit: str) -> None:
    if compiler == "gcc" and shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("GCC for Arm is not installed")
    made = build(chain(), platform, [unit], toolchain=compiler, schedules=None, overlap=True)
    assert made.overlap is not None and made.overlap.hidden
    project = Project.of(made)
    texts = flat_files(project)
    sources = [SourceText(name, text) for name, text in texts.items() if name.endswith(".c")]
    headers = {name: text for name, text in texts.items() if name.endswith(".h")}
    strict = STRICT_GCC if compiler == "gcc" else STRICT
    project.toolchain.compile(sources, headers, flags=strict)


@pytest.mark.costly
def test_firmware_takes_what_the_simulation_took(tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("GCC for Arm is not installed")
    made = build(chain(), "cortex-m4", UNITS[:1], toolchain="gcc", schedules=None, overlap=True)
    project = Project.of(made)
    export_project(project, tmp_path / "out")
    subprocess.run(["make", "-s", "-j2"], cwd=tmp_path / "out", check=True)
    ran = run_firmware(made.program, (tmp_path / "out/firmware.elf").read_bytes())
    assert ran.status == 0 and made.overlap is not None
    assert ran.instructions == project.simulated.profile.instructions
    assert ran.cycles == pytest.approx(made.overlap.promised, rel=0.02)
