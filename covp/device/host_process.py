"""The process that the host device's programs run in (host_runner.c): built, started, ended."""

from __future__ import annotations

import os
import platform
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from covp.compilers.host_compiler import HostBinary, compile_for_host
from covp.errors import DeviceError

_SOURCE = Path(__file__).with_name("host_runner.c")
# Zig links a list of symbols for glibc, but compiles every file of musl, which takes a minute.
_ON_GLIBC = platform.libc_ver()[0] == "glibc"
_TARGET = ("-target", "x86_64-linux-gnu.2.17" if _ON_GLIBC else "x86_64-linux-musl")
_LINK = (*_TARGET, "-pie" if _ON_GLIBC else "-static-pie", "-s")
_RUNNER = HostBinary("", (*_TARGET, "-fPIE", "-O2"), _LINK)
_COMMAND = struct.Struct("<4I")
_REPORT = struct.Struct("<Ii3Q17Q")
_GRACE = 5.0  # seconds for what takes microseconds on an idle machine

REGISTERS = (
    *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"),
    *(f"r{number}" for number in range(8, 16)),
    "rip",
)


class Report(NamedTuple):
    """The end of a run.

    Attributes:
        signal: its number; 0 at the stop.
        code: the signal's ``si_code``.
        address: of the access, where the signal has one.
        error: the processor's page fault error code.
        nanoseconds: of processor time that the run took.
        registers: by the names in `REGISTERS`.
    """

    signal: int
    code: int
    address: int
    error: int
    nanoseconds: int
    registers: dict[str, int]


class HostProcess:
    """A child process, ready to run code in memory that it shares with this one.

    Linux ends it with the thread that made it, so that nothing of this process' end, however
    sudden, leaves it running: `usable` is false in another thread.

    Args:
        file: descriptor of the memory.
        pieces: (start, offset in the file, bytes, writable) of each part of the memory.

    Raises:
        DeviceError: not possible on this machine, or an address is taken.
        ToolchainError: the program for the process cannot be compiled.
    """

    def __init__(self, file: int, pieces: Sequence[tuple[int, int, int, bool]]) -> None:
        words = [str(os.getpid()), str(file)]
        for start, offset, size, writable in pieces:
            words += [f"0x{start:08x}", str(offset), str(size), "w" if writable else "r"]
        self._thread = threading.get_ident()
        self._ended_once = False
        program = host_runner()
        try:
            self._child = subprocess.Popen(
                [program, *words],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(file,),
                start_new_session=True,  # what the program forks is ended with it
            )
        except OSError as error:
            raise DeviceError(f"device host: {program} cannot be started: {error}") from None
        try:
            ready = self._report(_GRACE)
        except BaseException:
            self.end()
            raise
        if ready is None:
            self.end()
            raise DeviceError(f"device host: its process was not ready within {_GRACE:g} seconds")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def usable(self) -> bool:
        """True if this thread can give the process a command."""
        return self._child.poll() is None and self._thread == threading.get_ident()

    def run(self, entry: int, stop: int, sp: int, seconds: float) -> Report | None:
        """Jump to ``entry`` with all registers 0 but ``sp``; a breakpoint must be at ``stop``.

        Returns:
            How it ended; signal SIGALRM where the time was over. None where it does not even
            answer then. Unless the signal is 0, the process is of no more use.

        Raises:
            DeviceError: the process ended, and not by the program.
        """
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(_COMMAND.pack(entry, stop, sp, 0))
        except OSError:
            raise self._end_reason() from None
        report = self._report(seconds)
        if report is None:
            self._child.send_signal(signal.SIGALRM)
            report = self._report(_GRACE)
            if report is not None:
                report = report._replace(signal=signal.SIGALRM)
        return report

    def end(self) -> None:
        """Kill it and what it forked, and wait until it is gone. A second call does nothing."""
        if self._ended_once:
            return
        self._ended_once = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()

    def _report(self, seconds: float) -> Report | None:
        """Read the next report; None where it does not come in time."""
        assert self._child.stdout is not None
        poller = select.poll()
        poller.register(self._child.stdout, select.POLLIN)
        end = time.monotonic() + seconds
        data = b""
        while len(data) < _REPORT.size:
            left = max(0.0, end - time.monotonic())
            if not poller.poll(min(left * 1000, 1e9)):
                return None
            part = self._child.stdout.read(_REPORT.size - len(data))
            if not part:
                raise self._end_reason()
            data += part
        number, code, address, error, nanoseconds, *values = _REPORT.unpack(data)
        registers = dict(zip(REGISTERS, values, strict=True))
        return Report(number, code, address, error, nanoseconds, registers)

    def _end_reason(self) -> DeviceError:
        """Return the reason why there will be no report."""
        assert self._child.stderr is not None
        status = self._child.wait()
        said = self._child.stderr.read().decode(errors="replace").strip()
        if said:
            return DeviceError(f"device host: memory cannot be mapped: {said}")
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return DeviceError(f"device host: its process was ended {how}; the next run has a new one")


def host_runner() -> Path:
    """Return the program of the process, compiled by the bundled compiler when it is not cached.

    Raises:
        DeviceError: this machine does not run it.
        ToolchainError: it does not compile.
    """
    system, machine = sys.platform, platform.machine()
    if system != "linux" or machine.lower() not in ("x86_64", "amd64"):
        raise DeviceError(
            f"device host: needs Linux on x86-64, this machine is {system} on {machine}; "
            "run the program on a virtual platform"
        )
    return compile_for_host("host", "the runner of device host", [_SOURCE], _RUNNER)
