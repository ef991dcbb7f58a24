"""The checkout and the wheel built from it; skipped where the tests lie outside a checkout."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("accel_backends", "device_runtime", "peripherals", "platforms")


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The repository's root."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("not in a checkout")
    return ROOT


def copy_sources(checkout: Path, target: Path) -> Path:
    """What a wheel is built from, without what an earlier build left behind."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(checkout / name, target)
    for name in ("covp", *FOLDERS):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(checkout / name, target / name, symlinks=True, ignore=ignored)
    return target


def build_wheel(source: Path, target: Path) -> Path:
    """The wheel of a source tree; needs no network."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = target.glob("covp-*.whl")
    return built


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    return build_wheel(copy_sources(checkout, folder / "source"), folder)
