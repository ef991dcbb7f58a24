"""The launch.json for cortex-debug: its keys, and what the extension does with it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from covp.chip.platform_file import load_platform
from covp.device.debug.gdb_stub import GdbStub
from covp.device.debug.launch import check_replaceable, launch_json
from covp.device.debug.remote_bitbang import debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.errors import UsageError
from tests.cli.test_gdbserver import serving

from .gdb_bench import PROGRAM, build, line, run_gdb

# cortex-debug 1.13, package.json: contributes.debuggers[0].configurationAttributes.launch, of
# which this is what a configuration of covp may have; type, request and name are VS Code's
STRING, LIST = str, list
KEYS = {
    "name": STRING, "type": STRING, "request": STRING, "cwd": STRING, "executable": STRING,
    "gdbPath": STRING, "toolchainPrefix": STRING, "runToEntryPoint": STRING, "svdFile": STRING,
    "servertype": STRING, "gdbTarget": STRING, "interface": STRING, "configFiles": LIST,
    "openOCDLaunchCommands": LIST, "openOCDPreConfigLaunchCommands": LIST,
    "preLaunchCommands": LIST,
}  # fmt: skip
TYPES = {"external", "openocd"}


def configurations(platform: str, **more: Any) -> list[dict[str, Any]]:
    text = launch_json(load_platform(platform), "127.0.0.1:3333", None, None, **more)
    return list(json.loads(text)["configurations"])


@pytest.mark.parametrize("platform", ["stm32l4r5", "riscv32", "cortex-m0plus"])
def test_keys_are_those_of_the_extension(platform: str) -> None:
    found = configurations(platform)
    assert [one["servertype"] for one in found] == ["external", "openocd"][: len(found)]
    assert len(found) == (1 if platform == "cortex-m0plus" else 2)  # it has no board file
    for one in found:
        assert {key: type(value) for key, value in one.items()}.items() <= KEYS.items()
        assert one["type"] == "cortex-debug" and one["request"] == "launch"
        assert all(isinstance(item, str) for key in one if KEYS[key] is LIST for item in one[key])


def started(one: dict[str, Any], target: str, elf: Path) -> str:
    """What GDB prints when it is driven as the extension drives it (src/external.ts, openocd.ts,
    gdb.ts): connect, commands before the launch, reset, download, reset, run to the entry point.
    """
    reset = "monitor reset halt"
    commands = [f"target extended-remote {target}", *one.get("preLaunchCommands", [])]
    commands += [reset, "load", reset, f"tbreak {one['runToEntryPoint']}", "continue"]
    answer = run_gdb(elf, *commands, "next", "print ratio", "bt 1")
    return "\n".join(answer.parts) + answer.console


@pytest.mark.parametrize("platform", ["stm32f746", "riscv32"])
def test_the_external_server(platform: str) -> None:
    elf = build(platform, "zig", PROGRAM)
    (one, *_) = configurations(platform)
    with (
        VirtualDevice(load_platform(platform)) as device,
        DebugTarget(device) as target,
        DebugServer(GdbStub(target).serve) as server,
    ):
        text = started(one, f"127.0.0.1:{server.port}", elf)
    assert "Temporary breakpoint 1, main" in text and "$1 = 3" in text


@contextmanager
def openocd_as_configured(one: dict[str, Any], folder: Path) -> Iterator[int]:
    """OpenOCD with the arguments of src/openocd.ts; its GDB port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = ["-c", f"gdb_port {port}", "-c", "tcl_port disabled", "-c", "telnet_port disabled"]
    words += ["-s", str(folder)]
    for option, key in (
        ("-c", "openOCDPreConfigLaunchCommands"),
        ("-f", "configFiles"),
        ("-c", "openOCDLaunchCommands"),
    ):
        for word in one.get(key, []):
            words += [option, word]
    with subprocess.Popen(["openocd", *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            deadline = time.monotonic() + 30
            for said in process.stderr:
                if f"Listening on port {port} for gdb" in said:
                    break
                assert time.monotonic() < deadline
            yield port
        finally:
            process.kill()


@pytest.mark.parametrize("platform", ["stm32f746", "stm32l4r5", "riscv32"])
def test_openocd_at_the_virtual_board(platform: str, tmp_path: Path) -> None:
    if shutil.which("openocd") is None:
        pytest.skip("openocd is not installed: apt install openocd")
    elf = build(platform, "zig", PROGRAM)
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        protocol = "jtag" if platform == "riscv32" else "stlink"
        with DebugServer(debug_port(protocol, target)) as server:
            ports = {"stlink_port": server.port, "jtag_port": server.port}
            (_, one) = configurations(platform, **ports)
            with openocd_as_configured(one, tmp_path) as port:
                text = started(one, f"127.0.0.1:{port}", elf)
    assert "Temporary breakpoint 1, main" in text and "$1 = 3" in text
    assert "semihosting is enabled" in text


@pytest.mark.costly
def test_the_server_writes_it(tmp_path: Path) -> None:
    elf, file, svd = build("stm32f746", "zig", PROGRAM), tmp_path / "l.json", tmp_path / "b.svd"
    options = ("-p", "stm32f746", "--elf", elf, "--launch-json", file, "--svd", svd)
    for _ in range(2):  # ours may be replaced
        with serving(*options) as server:
            one = json.loads(file.read_text())["configurations"][0]
            assert one["gdbTarget"] in server.lines[0]
            assert one["executable"] == str(elf) and one["svdFile"] == str(svd)
            assert Path(one["svdFile"]).is_file()
            assert line("main").split(":")[1] in started(one, one["gdbTarget"], elf)
    file.write_text('{"configurations": [{"name": "mine"}]}')
    with pytest.raises(UsageError, match="are not covp's and would be lost"):
        check_replaceable(file)
    file.write_text("// comments make no JSON")
    with pytest.raises(UsageError, match="are not covp's"):
        check_replaceable(file)
