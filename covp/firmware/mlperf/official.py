"""`run_official`: MLPerf Tiny's own runner, unmodified, with a virtual board as its device."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from covp.errors import UsageError
from covp.firmware.mlperf import runner_ports


class Served(Protocol):
    """Virtual devices that the runner shall find.

    Attributes:
        ports: paths of terminals with the USB numbers that they show: PATH:VENDOR:PRODUCT.
        benchmark_name: of the benchmark that the firmware runs.
    """

    @property
    def ports(self) -> list[str]: ...

    @property
    def benchmark_name(self) -> str: ...

    def check(self) -> None:
        """Raise what ended the firmware, if anything did."""
        ...


def run_official(
    served: Served,
    folder: Path,
    arguments: Sequence[str] = (),
    python: str | None = None,
    cwd: Path | None = None,
) -> int:
    """Run the official runner on a board.

    Args:
        served: the board, or several devices.
        folder: benchmark/runner of a copy of mlcommons/tiny.
        arguments: of its main.py. Its files of devices and of tests are added where they are not
            named.
        cwd: where it runs and writes its ``sessions``; by default the current folder.
        python: the interpreter that has its requirements (pyserial, pyyaml, scikit-learn,
            matplotlib, scipy, pyusb); by default the one that runs covp.

    Returns:
        Its exit status.

    Raises:
        UsageError: there is no runner in the folder, or no such interpreter.
    """
    script = folder / "main.py"
    if not script.is_file():
        raise UsageError("no main.py in it; name benchmark/runner of mlcommons/tiny", where=folder)
    command = [
        python or sys.executable,
        str(Path(runner_ports.__file__)),
        *served.ports,
        str(script.resolve()),
        *with_files(folder.resolve(), served.benchmark_name, arguments),
    ]
    try:
        process = subprocess.Popen(command, cwd=cwd)
    except OSError as error:
        raise UsageError(f"{command[0]}: cannot be started: {error.strerror}") from None
    try:
        while process.poll() is None:
            served.check()
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        return process.returncode
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def with_files(folder: Path, benchmark: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the runner's own files where none are named."""
    given = list(arguments)
    names = {word.split("=")[0] for word in given}
    if not names & {"-d", "--device_list", "-y", "--device_yaml"}:
        kind = {"ad01": "ad", "sww01": "sww"}.get(benchmark, "kws_ic_vww")
        given += ["--device_list", str(folder / f"devices_{kind}.yaml")]
    if not names & {"-t", "--test_script"}:
        mode = _value(given, ("-m", "--mode")) or "a"
        kinds = {"a": "accuracy", "p": "performance", "e": "energy"}
        if mode in kinds:
            given += ["--test_script", str(folder / f"tests_{kinds[mode]}.yaml")]
    return given


def _value(arguments: Sequence[str], names: tuple[str, ...]) -> str | None:
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, sign, value = word.partition("=")
        if name in names:
            return value if sign else following
    return None
