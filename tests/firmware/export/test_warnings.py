"""Every C file of an exported project compiles without a warning, strictly, with each compiler."""

from __future__ import annotations

import shutil

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.errors import ToolchainError
from covp.firmware import Project
from tests.firmware.export.project_cases import flat_files, project
from tests.strict import STRICT, STRICT_GCC

MODELS = ("kws", "resnet", "vww", "toycar", "sww")
PLATFORMS = ("cortex-m4", "cortex-m7", "cortex-m0plus", "riscv32", "cv32e40p")
COMPILERS = ("zig", "gcc")
IN_CI = {
    ("kws", "cortex-m4", "zig", ""),
    ("kws", "cortex-m0plus", "gcc", ""),
    ("kws", "riscv32", "gcc", "gemm"),
    ("kws", "riscv32", "zig", "vector"),
}


def cases() -> list[object]:
    """Each model on each platform alone, and with each accelerator that takes a layer of it."""
    alone = [(m, p, c, "") for m in MODELS for p in PLATFORMS for c in COMPILERS]
    offloaded = [
        (model, platform, compiler, accelerator)
        for model in MODELS
        for accelerator in ("gemm", "vector", "qconv2d")
        for platform in ("cortex-m4", "riscv32")
        for compiler in COMPILERS
        if model != "toycar" or accelerator == "gemm"
    ]
    units = [(model, "vexriscv-cfu", c, "cfu") for model in MODELS for c in COMPILERS]
    return [
        pytest.param(*case, marks=() if case in IN_CI else pytest.mark.slow)
        for case in (*alone, *offloaded, *units)
    ]


def demand_strict(made: Project) -> None:
    """Raises ToolchainError with the first warning."""
    texts = flat_files(made)
    sources = [SourceText(name, text) for name, text in texts.items() if name.endswith(".c")]
    headers = {name: text for name, text in texts.items() if name.endswith(".h")}
    strict = STRICT_GCC if made.toolchain.name == "gcc" else STRICT
    made.toolchain.compile(sources, headers, flags=strict)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "platform", "compiler", "accelerator"), cases())
def test_a_project_compiles_without_a_warning(
    model: str, platform: str, compiler: str, accelerator: str
) -> None:
    core = load_platform(platform).core
    if compiler == "gcc" and shutil.which(f"{core.gcc_prefix}gcc") is None:
        pytest.skip(f"{core.gcc_prefix}gcc is not installed")
    demand_strict(project(model, platform, compiler, accelerator))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_warning_is_found(compiler: str) -> None:
    core = load_platform("riscv32").core
    if compiler == "gcc" and shutil.which(f"{core.gcc_prefix}gcc") is None:
        pytest.skip(f"{core.gcc_prefix}gcc is not installed")
    text = "int narrow(int x);\nint narrow(int x)\n{\n    signed char y = x;\n    return y;\n}\n"
    with pytest.raises(ToolchainError, match=r"narrow\.c:4"):
        get_toolchain(compiler, core).compile([SourceText("narrow.c", text)], flags=STRICT)
