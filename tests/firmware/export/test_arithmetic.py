"""Options that decide results: in the sources, in the build files, and noticed by the self-test."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from covp.compilers.toolchain import split_sources
from covp.errors import ToolchainError
from covp.evaluation import build
from covp.firmware import Project, export_project
from covp.firmware.layouts import layout_names
from covp.runtime.standalone import link_standalone, start_files

from .firmware import last_line

GCC = "arm-none-eabi-gcc"
M4F = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
NEEDS_GCC = pytest.mark.skipif(shutil.which(GCC) is None, reason=f"{GCC} is not installed")
FUSED = re.compile(r"\bvfn?m[as]\b")


@cache
def project() -> Project:
    return Project.of(build("toycar_float", "cortex-m4", toolchain="gcc"))


def fused(files: dict[str, str], folder: Path) -> int:
    """Fused instructions of sources that GCC compiles with -O2 and nothing else."""
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [GCC, *M4F, "-O2", "-S", *(name for name in files if name.endswith(".c"))]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return sum(len(FUSED.findall(path.read_text())) for path in folder.glob("*.s"))


@pytest.mark.costly
@NEEDS_GCC
def test_no_layout_lets_a_compiler_fuse(tmp_path: Path) -> None:
    """The same sources are in each layout; without what they begin with GCC does fuse."""
    files = {Path(name).name: text for name, text in project().library.files.items()}
    assert fused(files, tmp_path) == 0
    free = {name: text.replace("fp-contract=off", "") for name, text in files.items()}
    assert fused(free, tmp_path) > 100


@pytest.mark.costly
@pytest.mark.parametrize("layout", layout_names())
def test_build_files_and_manifest_have_the_option(layout: str, tmp_path: Path) -> None:
    export_project(project(), tmp_path / "p", layout)
    manifest = json.loads((tmp_path / "p" / "manifest.json").read_text())
    assert "-ffp-contract=off" in manifest["flags"]
    build_file = {
        "make": "Makefile", "cmake": "CMakeLists.txt", "esp-idf": "CMakeLists.txt",
        "zephyr": "zephyr/CMakeLists.txt", "platformio": "library.json",
    }.get(layout)  # fmt: skip
    if build_file is not None:  # the others' package managers have no place for it
        assert "-ffp-contract=off" in (tmp_path / "p" / build_file).read_text()


def printed(*flags: str, guarded: bool, start: str = "") -> str:
    """The last line of firmware that is compiled with further options."""
    made = project()
    library = {
        name: text if guarded else re.sub(r"#pragma (GCC|STDC).*", "", text)
        for name, text in made.library.files.items()
    }
    files = {**library, **made.sample, **made.firmware}
    files["main.c"] = files["main.c"].replace("    board_init();", f"    board_init();{start}")
    given = {*start_files(made.program.platform), "memory.c", "workspace.c"}
    texts = {
        Path(name).name: text
        for name, text in files.items()
        if not name.startswith("runtime/include/") and Path(name).name not in given
    }
    sources, headers = split_sources(texts)
    elf = link_standalone(made.toolchain, made.program.platform, sources,
                          (*made.program.flags, *flags), headers)  # fmt: skip
    return last_line(made.program, elf.read_bytes())


FLUSH = ' __asm__ volatile("vmsr fpscr, %0" ::"r"(1u << 24));'
UPWARDS = ' __asm__ volatile("vmsr fpscr, %0" ::"r"(1u << 22));'


@pytest.mark.costly
@NEEDS_GCC
def test_the_self_test_says_what_is_wrong_with_the_arithmetic() -> None:
    fast, reordered = "-ffp-contract=fast", ("-fassociative-math", "-fno-trapping-math")
    assert printed(guarded=True) == "pass"
    assert printed(fast, guarded=True) == "pass", "the sources decide"
    assert printed(fast, guarded=False).startswith("fail: products and sums are fused")
    signs = "-fno-signed-zeros"
    assert printed(*reordered, signs, guarded=True).startswith("fail: sums are reordered")
    assert printed(signs, guarded=True).startswith("fail: infinities or signs of zeros")
    finite = printed("-ffinite-math-only", guarded=True)
    assert finite.startswith("fail: infinities or signs of zeros")
    assert printed(guarded=True, start=FLUSH).startswith("fail: subnormal numbers are flushed")
    assert printed(guarded=True, start=UPWARDS).startswith("fail: results are not rounded")
    with pytest.raises(ToolchainError, match="compile without -ffast-math"):
        printed("-ffast-math", guarded=True)


@pytest.mark.costly
def test_integers_need_no_probe() -> None:
    made = Project.of(build("toycar", "cortex-m0plus"))
    sources = made.library.files
    assert "there are integers only" in sources["src/toycar.c"]
    assert not any("#pragma" in text for text in sources.values())
    assert replace(made).library.files == sources
