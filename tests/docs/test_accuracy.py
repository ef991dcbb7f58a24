"""docs/accuracy.md: made from the JSON files, and the known errors of models are those it shows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from covp.chip.cores import find_core
from covp.compilers.toolchain import get_toolchain
from covp.device.timing.model import load_timing
from covp.errors import ToolchainError

ROOT = Path(__file__).parents[2]


def load_benchmark(name: str) -> ModuleType:
    path = ROOT / "benchmarks" / f"{name}.py"
    if not path.is_file():
        pytest.skip("not in a checkout")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def generator() -> ModuleType:
    return load_benchmark("accuracy")


def test_the_page_is_what_the_files_give(
    generator: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--check"])
    assert generator.main() == 0, capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "loops"])
    assert generator.main() == 0
    assert generator.loops_differ() in capsys.readouterr().out


def test_the_known_error_of_a_model_is_its_largest(generator: ModuleType) -> None:
    for section in ("rtl", "coremark"):
        for row in generator.rows_of(section):
            errors = load_timing(find_core(row["core"]).timing or "").errors
            memory = row.get("assumes") or next(iter(errors))
            assert abs(row["error"]) <= errors[memory], row


@pytest.mark.costly
@pytest.mark.parametrize(("core", "compiler"), [("cortex-m4f", "gcc"), ("cortex-m7f", "zig")])
def test_coremark_still_takes_as_many_cycles(
    generator: ModuleType, core: str, compiler: str
) -> None:
    coremark = load_benchmark("coremark")
    rows = [
        row
        for row in generator.rows_of("coremark")
        if row["core"] == core and row["compiler"].startswith(compiler)
    ]
    try:
        coremark.sources()
        version = get_toolchain(compiler, find_core(core)).version
    except ToolchainError as error:
        pytest.skip(str(error))
    if version != rows[-1]["compiler"]:
        pytest.skip(f"the figures are of {rows[-1]['compiler']}, this is {version}")
    build = coremark.OMAX if compiler == "zig" else coremark.Build("gcc", ("-O3",))
    cycles = coremark.run(core, "virtual", build).cycles
    assert cycles == pytest.approx(rows[-1]["cycles"], rel=0.005)
