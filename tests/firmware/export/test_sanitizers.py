"""Exported libraries on this machine, under the address and undefined-behaviour sanitizers.

C for cores without SIMD runs anywhere; for those with it a header stands for Arm's intrinsics.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from covp.firmware import Project
from tests.firmware.export.project_cases import project, write

INTRINSICS = Path(__file__).parents[2] / "codegen" / "fuzz" / "host_include"
COMPILERS = ("gcc", "clang")
SANITIZERS = (
    "-std=c99",
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
CASES = [
    ("kws", "cortex-m4"),
    *(
        pytest.param(model, platform, marks=pytest.mark.slow)
        for model in ("kws", "resnet", "vww", "toycar", "sww")
        for platform in ("host", "cortex-m0plus", "riscv32", "cortex-m4")
        if (model, platform) != ("kws", "cortex-m4")
    ),
]
MAIN = """\
#include "{name}_selftest.h"

static uint8_t arena[{NAME}_ARENA_BYTES] __attribute__((aligned({NAME}_ARENA_ALIGNMENT)));

int main(void)
{{
    {name}_context model;
    int status = {name}_init(&model, arena, sizeof arena);
    return status == {NAME}_OK ? {name}_selftest(&model) != 0 : 2;
}}
"""


def run(made: Project, files: Mapping[str, str], folder: Path, compiler: str) -> None:
    """Raises where it does not compile, a sanitizer reports something or an output is wrong."""
    name = made.library.name
    main = MAIN.format(name=name, NAME=name.upper())
    write({**files, **made.sample, "main.c": main}, folder)
    sources = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.c"))
    options = ["-Iinclude", "-Isrc", "-I.", f"-I{INTRINSICS}"]
    command = [compiler, *SANITIZERS, *options, *sources, "-o", "program"]
    compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "the output is not the expected one"


def demand(compiler: str, folder: Path) -> None:
    """Skips the test where a compiler or its sanitizers are missing."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (folder / "probe.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    command = [compiler, *SANITIZERS, "probe.c", "-o", "probe"]
    if subprocess.run(command, cwd=folder, capture_output=True).returncode:
        pytest.skip(f"{compiler} has no sanitizers here")
    (folder / "probe.c").unlink()


@pytest.mark.costly
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("model", "platform"), CASES)
def test_sanitizers_report_nothing(
    tmp_path: Path, model: str, platform: str, compiler: str
) -> None:
    demand(compiler, tmp_path)
    made = project(model, platform)
    run(made, made.library.files, tmp_path, compiler)


@pytest.mark.costly
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("_infer(context->arena)", "_infer(context->arena + 4 * KWS_ARENA_BYTES)", "ddress"),
        ("    context->arena = arena;", "    context->arena = (uint8_t *)arena + 1;", "misaligned"),
    ],
)
def test_what_is_wrong_is_reported(
    tmp_path: Path, compiler: str, old: str, new: str, reported: str
) -> None:
    demand(compiler, tmp_path)
    made = project("kws", "riscv32")
    text = made.library.files["src/kws.c"]
    assert old in text
    broken = {**made.library.files, "src/kws.c": text.replace(old, new)}
    with pytest.raises(AssertionError, match=reported):
        run(made, broken, tmp_path, compiler)
