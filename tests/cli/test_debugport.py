"""``covp debug port`` and ``covp openocd start`` as processes, and the lines that they print."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import Call

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]
TIMEOUT = 60  # seconds; none of this takes long


def need_openocd() -> None:
    if shutil.which("openocd") is None:
        pytest.skip("openocd is not installed: apt install openocd")


@dataclass
class Running:
    """A command that serves, and the two lines that it has printed."""

    process: subprocess.Popen[str]
    lines: list[str]

    @property
    def port(self) -> int:
        """Of ``debugport``."""
        return int(self.lines[0].split(";")[0].rpartition(":")[2])

    def openocd(self, *commands: str) -> str:
        """What the printed OpenOCD line shows with these commands added."""
        need_openocd()
        words = shlex.split(self.lines[1])
        quiet = ["-c", "gdb_port disabled; telnet_port disabled; tcl_port disabled"]
        for command in ("init", *commands, "shutdown"):
            quiet += ["-c", command]
        done = subprocess.run([*words, *quiet], capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@contextmanager
def serving(*arguments: object) -> Iterator[Running]:
    """The command is up inside the block; Ctrl-C ends it well."""
    process = subprocess.Popen(
        [*COVP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(2)]
        assert all(lines), process.communicate()[1]
        yield Running(process, lines)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
        # before it, what the program in the (empty) flash did
        assert (process.returncode, out) == (0, "") and errors.endswith("stopped\n"), errors
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()


def refuses(port: int) -> bool:
    """Whether nothing listens there."""
    with socket.socket() as client:
        client.settimeout(TIMEOUT)
        return client.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "protocol", "ram", "says"),
    [
        ("stm32f746", "stlink", 0x20000000, "Cortex-M7 r0p1 processor detected"),
        ("stm32f746", "jtag", 0x20000000, "0x06449041"),
        ("stm32l4r5", "stlink", 0x20000000, "Cortex-M4 r0p1 processor detected"),
        ("stm32l4r5", "jtag", 0x20000000, "0x06470041"),
        ("riscv32", "jtag", 0x80000000, "XLEN=32, misa=0x40001104"),
    ],
)
def test_the_printed_line_attaches(platform: str, protocol: str, ram: int, says: str) -> None:
    with serving("debug", "port", "-p", platform, "--protocol", protocol, "--port", 0) as running:
        assert running.lines[0].startswith(f"{platform}: {protocol} at 127.0.0.1:")
        for number in (1, 2):  # one OpenOCD after the other
            text = running.openocd("halt", f"mww {ram:#x} {number:#x}", f"mdw {ram:#x}")
            assert says in text and f"{ram:#x}: {number:08x}" in text
            assert "UNEXPECTED" not in text
        port = running.port
        assert not refuses(port)
    assert refuses(port)


@pytest.mark.costly
def test_ctrl_c_with_a_client_connected() -> None:
    with serving("debug", "port", "-p", "stm32f746", "--port", 0) as running:
        client = socket.create_connection(("127.0.0.1", running.port), timeout=TIMEOUT)
        client.sendall(b"\x05")  # the first byte of a command
    with client, suppress(ConnectionResetError):
        assert client.recv(1) == b""


@pytest.mark.costly
def test_the_whole_chain_runs_a_model(small: Path, call: Call) -> None:
    need_openocd()
    with serving("debug", "port", "-p", "stm32f746", "--port", 0) as board:
        backend = f"hla_stlink_backend tcp {board.port}"
        start = ("openocd", "start", "-p", "stm32f746", "--port", 0, "-c", backend)
        with serving(*start) as openocd:
            words = shlex.split(openocd.lines[1])
            assert words[:3] == ["covp", "run", "kws"]
            record = call("run", small, *words[3:], "--json").document
            assert record["matches_reference"] is True
            assert record["check"]["level"] == "output"
            # layer by layer it takes a second connection, after the measured one
            record = call("run", small, *words[3:], "--check", "layers", "--json").document
            assert record["matches_reference"] is True
            assert (record["check"]["layers"], record["check"]["inputs"]) == (3, 4)
            port = int(words[-1].rpartition(":")[2])
        assert refuses(port)  # no OpenOCD is left
        with serving(*start) as openocd:  # and the port of the board is free again
            assert "OpenOCD has reached the board" in openocd.lines[0]


def test_openocd_that_is_killed() -> None:
    need_openocd()
    with serving("debug", "port", "-p", "stm32f746", "--port", 0) as board:
        backend = f"hla_stlink_backend tcp {board.port}"
        command = [*COVP, "openocd", "start", "-p", "stm32f746", "--port", "0", "-c", backend]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.is_file():
            process.kill()
            pytest.skip("this system does not list a process's children in /proc")
        os.kill(int(children.read_text()), signal.SIGKILL)
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 1
        assert errors.startswith("covp: OpenOCD has ended: ") and errors.count("\n") == 1


def test_a_port_in_use(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refusal = call("debug", "port", "-p", "stm32f746", "--port", port).refusal
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in refusal


def test_bad_calls_are_refused(call: Call) -> None:
    def refusal(*arguments: object) -> str:
        return call(*arguments).refusal

    assert "unknown platform 'stm32f747'" in refusal("debug", "port", "-p", "stm32f747")
    assert "unknown platform 'nix'" in refusal("openocd", "start", "-p", "nix")
    assert "take the protocol jtag" in refusal(
        "debug", "port", "-p", "riscv32", "--protocol", "stlink"
    )
    assert "use device host" in refusal("debug", "port", "-p", "host")
    assert "'swd' is not one of" in refusal("debug", "port", "-p", "stm32f746", "--protocol", "swd")
    assert "65536 is not in the range" in refusal(
        "debug", "port", "-p", "stm32f746", "--port", 65536
    )
    assert "cannot listen on 1.2.3.4" in refusal(
        "debug", "port", "-p", "stm32f746", "--port", 0, "--host", "1.2.3.4"
    )
    assert "openocd.board" in refusal("openocd", "start", "-p", "riscv32")


def test_a_port_of_openocd_in_use(call: Call) -> None:
    need_openocd()
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        serving("debug", "port", "-p", "stm32f746", "--port", 0) as board,
    ):
        port = other.getsockname()[1]
        backend = f"hla_stlink_backend tcp {board.port}"
        text = call("openocd", "start", "-p", "stm32f746", "--port", port, "-c", backend).refusal
    assert "OpenOCD does not start" in text and f"{port}" in text and "in use" in text


def test_openocd_without_a_probe(call: Call) -> None:
    need_openocd()
    refusal = call("openocd", "start", "-p", "stm32f746", "--port", 0).refusal
    assert "OpenOCD does not start" in refusal and "is the board plugged in" in refusal
    missing = call("openocd", "start", "-p", "stm32f746", "--config", "nix.cfg").refusal
    assert "OpenOCD does not start" in missing and "nix.cfg" in missing


def test_openocd_that_is_not_installed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "apt install openocd" in call("openocd", "start", "-p", "stm32f746").refusal
