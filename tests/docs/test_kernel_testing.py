"""docs/kernel-testing.md in an empty folder, and examples/kernels with mistakes planted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "kernel-testing.md"
EXAMPLE = ROOT / "examples" / "kernels"
PYTEST = f"{sys.executable} -m pytest -p no:covp -p covp.laboratory.plugin -p no:xdist"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def run(folder: Path, line: str) -> tuple[int, str]:
    """A line of shell whose pytest has the plugin from this checkout."""
    drop = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "CI"}
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    environment |= {"PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(folder / "shown.md")}
    done = subprocess.run(
        ["bash", "-ec", re.sub(r"^pytest", PYTEST, line, flags=re.M)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "INTERNALERROR" not in done.stdout, done.stdout
    return done.returncode, done.stdout + done.stderr


def same_but_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\+0x[0-9a-f]+", "0x", text)


def lines_of(expected: str, output: str) -> None:
    """Each printed line of the page is in the output, in this order."""
    rest = same_but_addresses(output)
    for line in filter(None, same_but_addresses(expected).splitlines()):
        assert line in rest, f"{line}\nis not in\n{output}"
        rest = rest.partition(line)[2]


@pytest.mark.slow
def test_from_an_empty_folder_to_ci(tmp_path: Path) -> None:
    code, test, more = blocks("c")[0], blocks("python")[0], blocks("python")[1]
    wrong, outside = blocks("text")
    (tmp_path / "dot.c").write_text(code)
    (tmp_path / "test_dot.py").write_text(test)
    assert len([line for line in test.splitlines() if line]) <= 10
    status, output = run(tmp_path, "pytest --hypothesis-seed=1")
    assert status == 1
    lines_of(wrong, output)
    wide = re.sub(r"int16_t (left|right)", r"int32_t \1", code)
    (tmp_path / "dot.c").write_text(wide)
    status, output = run(tmp_path, "pytest")
    assert status == 0, output
    status, output = run(tmp_path, "pytest --covp-sanitize")
    assert status == 1
    lines_of(outside, output)
    right = wide.replace("x[4], y[4]", "x[4] = {0}, y[4] = {0}").replace(
        "        memcpy(x, a + i, 4);\n        memcpy(y, b + i, 4);\n",
        "        const size_t rest = n - i < 4 ? (size_t)(n - i) : 4;\n"
        "        memcpy(x, a + i, rest);\n        memcpy(y, b + i, rest);\n",
    )
    (tmp_path / "dot.c").write_text(right)
    (tmp_path / "test_more.py").write_text(more)
    check_ci(tmp_path)


def check_ci(folder: Path) -> None:
    """The shell lines of the job but pip, after those that write the baseline."""
    steps = yaml.safe_load(blocks("yaml")[0])["jobs"]["kernels"]["steps"]
    shell = [step["run"] for step in steps if "run" in step]
    assert "ziglang==" in shell[0], "the compiler is pinned"
    install, baseline = blocks("sh")
    assert install.startswith("pip install ../covp")
    assert run(folder, baseline.partition("git")[0])[0] == 0
    for line in shell[1:]:
        status, output = run(folder, line)
        assert status == 0, output
    assert (folder / "kernels.xml").is_file() and (folder / "kernels.json").is_file()
    assert "dot.c::dot" in (folder / "shown.md").read_text()


MISTAKES = {
    "the input's offset is forgotten": (
        "convolve_s8.c", "[(y * in->w + x) * in->c + c] + params->input_offset)",
        "[(y * in->w + x) * in->c + c])", "AssertionError",
    ),
    "the last elements are read four at a time": (
        "convolve_s8.c", "for (; i + 4 <= length; i += 4)", "for (; i < length; i += 4)",
        "out-of-bounds read|uninitialised read",
    ),
    "too little scratch memory is taken": (
        "convolve_s8.c", "* (int32_t)sizeof(int16_t)", "", "out-of-bounds write .* of ctx.buf",
    ),
    "two rows where one is left": (
        "vec_mat_mult_s8.c", "row + 2 <= rows", "row < rows", "out-of-bounds read .* of matrix",
    ),
    "ties are rounded up": (
        "nn.h", "(mask >> 1) + (high < 0)", "(mask >> 1)", "AssertionError",
    ),
}  # fmt: skip


def copied(folder: Path) -> Path:
    return Path(
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    )


@pytest.mark.costly
def test_the_example_is_right_on_two_architectures(tmp_path: Path) -> None:
    platforms = "--covp-platform cortex-m4 --covp-platform riscv32"
    status, output = run(
        copied(tmp_path / "kernels"), f"pytest {platforms} --covp-sanitize --covp-ubsan"
    )
    assert status == 0 and "4 passed" in output, output
    assert blocks("python")[2] in (EXAMPLE / "test_kernels.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_example_finds_mistakes(mistake: str, tmp_path: Path) -> None:
    file, before, after, message = MISTAKES[mistake]
    folder = copied(tmp_path / "kernels")
    source = (folder / file).read_text()
    assert source.count(before) == 1
    (folder / file).write_text(source.replace(before, after))
    status, output = run(folder, "pytest --covp-sanitize")
    assert status == 1 and re.search(message, output), output
    assert "as a test of its own" in output
