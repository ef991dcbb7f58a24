"""The real OpenOCD, talked to through its Tcl port."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_START_SECONDS = 30
_END = b"\x1a"


class OpenOcd:
    """A running OpenOCD; calling it carries out a Tcl command and gives what it printed."""

    def __init__(self, port: int, log: Path) -> None:
        self._log = log
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __call__(self, command: str) -> str:
        status, text = self.attempt(command)
        assert status == 0, f"{command}: {text}"
        return text

    def attempt(self, command: str) -> tuple[int, str]:
        """(0 or the error's code, what it printed or said)."""
        self._socket.sendall(f"list [catch {{capture {{{command}}}}} r] $r".encode() + _END)
        answer = b""
        while not answer.endswith(_END):
            piece = self._socket.recv(65536)
            assert piece, "OpenOCD has gone"
            answer += piece
        code, _, text = answer[:-1].decode().partition(" ")
        return int(code), text.removeprefix("{").removesuffix("}").strip()

    def words(self, address: int, count: int) -> list[int]:
        """Memory as 32-bit words."""
        return [int(word, 0) for word in self(f"read_memory {address:#x} 32 {count}").split()]

    def register(self, name: str) -> int:
        """A core register, read anew."""
        return int(self(f"get_reg -force {name}").split()[1], 0)

    @property
    def log(self) -> str:
        """What it wrote to its standard error."""
        return self._log.read_text()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def openocd(*arguments: str) -> Iterator[OpenOcd]:
    """OpenOCD with these arguments, initialized; it has to end by itself when told to."""
    if shutil.which("openocd") is None:
        pytest.skip("openocd is not installed: apt install openocd")
    ports = "gdb_port disabled; telnet_port disabled; tcl_port 0"
    command = ["openocd", "-c", ports, *arguments, "-c", "init"]
    with (
        tempfile.NamedTemporaryFile() as log,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log) as process,
    ):
        try:
            client = OpenOcd(_tcl_port(process, Path(log.name)), Path(log.name))
            try:
                yield client
                client.attempt("shutdown")
                process.wait(timeout=20)
            finally:
                client.close()
        finally:
            process.kill()


def _tcl_port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"Listening on port (\d+) for tcl connections", log.read_text())
        if found:
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(f"OpenOCD did not start: {log.read_text()}")
