"""The pytest plugin as a user has it: the wheel and pytest in a fresh environment, no options."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

KERNEL = """
#include <stdint.h>
int32_t dot(const int8_t *a, const int8_t *b, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}
"""
TEST = """
import numpy as np
from hypothesis import given, strategies as st

@given(st.lists(st.integers(-128, 127)))
def test_dot(kernel, values):
    dot = kernel("dot.c", "dot")
    a = np.array(values, np.int8)
    assert dot(a, a, len(a)) == (a.astype(int) ** 2).sum()
"""


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a fresh environment with the wheel, and our dependencies behind it."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    found = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(found), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--no-index", str(wheel)], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    behind = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "dependencies.pth").write_text("\n".join(behind))
    return found


def run(python: Path, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    drop = {"PYTHONPATH", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "CI"}
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    command = [str(python), "-m", "pytest", "-W", "error", "--strict-markers", *options]
    command += ["-p", "no:cacheprovider"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("xdist", ["no:xdist", "xdist"])
def test_it_works_without_any_configuration(python: Path, tmp_path: Path, xdist: str) -> None:
    (tmp_path / "dot.c").write_text(KERNEL)
    (tmp_path / "test_dot.py").write_text(TEST)
    done = run(python, tmp_path, "-p", xdist, *(["-n", "2"] if xdist == "xdist" else []))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout and "dot.c::dot" in done.stdout
    (tmp_path / "dot.c").write_text(KERNEL.replace("i < n", "i < n - 1"))
    wrong = run(python, tmp_path, "-p", xdist)
    assert wrong.returncode == 1 and "values=[1]" in wrong.stdout
    fixtures = run(python, tmp_path, "--fixtures", "-q")
    assert all(name in fixtures.stdout for name in ("covp_device", "covp_session", "kernel"))
