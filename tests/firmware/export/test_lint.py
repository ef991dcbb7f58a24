"""cppcheck and clang-tidy report nothing in exported C."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from covp.compilers.toolchain import Toolchain
from tests.firmware.export.project_cases import flat_files, project, write

CHECKS = (
    "-*",
    "bugprone-*",
    "cert-*",
    # int8_t is a number here, never a character
    "-bugprone-signed-char-misuse",
    "-cert-str34-c",
    # constants of a layer go to its functions side by side
    "-bugprone-easily-swappable-parameters",
)
CASES = [
    ("kws", "cortex-m4", ""),
    pytest.param("toycar", "cortex-m0plus", "", marks=pytest.mark.slow),
    pytest.param("sww", "cortex-m4", "vector", marks=pytest.mark.slow),
    pytest.param("resnet", "cortex-m4", "qconv2d", marks=pytest.mark.slow),
    pytest.param("vww", "cortex-m4", "gemm", marks=pytest.mark.slow),
    pytest.param("kws", "riscv32", "gemm", marks=pytest.mark.slow),
    pytest.param("sww", "vexriscv-cfu", "cfu", marks=pytest.mark.slow),
]
REPORTED = re.compile(r"^.*(?:error|warning|performance|portability): .*$", re.MULTILINE)


def demand_tool(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


def cppcheck(folder: Path, toolchain: Toolchain) -> list[str]:
    defines = {"arm": ("-D__arm__", "-D__ARM_ARCH=7"), "riscv": ("-D__riscv", "-D__riscv_xlen=32")}
    command = ["cppcheck", "-q", "--enable=warning,performance,portability", "--inline-suppr"]
    command += ["--std=c99", "--platform=unix32", *defines[toolchain.core.architecture]]
    done = subprocess.run([*command, "."], cwd=folder, capture_output=True, text=True)
    return REPORTED.findall(done.stderr)


def clang_tidy(folder: Path, toolchain: Toolchain) -> list[str]:
    target = {"arm": "thumbv7em-none-eabi", "riscv": "riscv32"}[toolchain.core.architecture]
    files = sorted(path.name for path in folder.glob("*.c"))
    command = ["clang-tidy", "-quiet", f"-checks={','.join(CHECKS)}", *files]
    options = [f"--target={target}", "-std=c99", "-ffreestanding", "-fbuiltin", "-I."]
    done = subprocess.run([*command, "--", *options], cwd=folder, capture_output=True, text=True)
    return REPORTED.findall(done.stdout)


TOOLS = {"cppcheck": cppcheck, "clang-tidy": clang_tidy}


@pytest.mark.costly
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(("model", "platform", "accelerator"), CASES)
def test_nothing_is_reported(
    tmp_path: Path, model: str, platform: str, accelerator: str, tool: str
) -> None:
    demand_tool(tool)
    made = project(model, platform, "zig", accelerator)
    write(flat_files(made), tmp_path)
    assert TOOLS[tool](tmp_path, made.toolchain) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_wrong_is_reported(tmp_path: Path, tool: str) -> None:
    demand_tool(tool)
    text = "int f(int n);\nint f(int n)\n{\n    int a[4];\n    if (n == 4)\n        return a[n];\n"
    text += "    for (int i = 0; i < n;)\n        ;\n    return 0;\n}\n"
    (tmp_path / "wrong.c").write_text(text)
    made = project("kws", "cortex-m4")
    assert TOOLS[tool](tmp_path, made.toolchain)
