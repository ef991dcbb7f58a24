"""`launch_json`: how Visual Studio Code's cortex-debug reaches a virtual board.

Keys as in the extension's package.json (github.com/Marus/cortex-debug, version 1.13),
contributes.debuggers[0].configurationAttributes.launch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from covp.chip.platform_file import Platform
from covp.errors import UsageError

_RISCV_CONFIG = Path(__file__).parent / "configs" / "riscv.cfg"
_MARK = "covp"
"""The first word of the names of our configurations."""


def launch_json(
    platform: Platform,
    gdb_target: str,
    elf: Path | None,
    svd: Path | None,
    stlink_port: int = 7184,
    jtag_port: int = 9824,
) -> str:
    """Return the content of .vscode/launch.json.

    The first configuration attaches to `covp debug gdb`, the second one starts an OpenOCD at
    `covp debug port`, for platforms with a board file and for RISC-V.

    Args:
        platform: the board.
        gdb_target: HOST:PORT of `covp debug gdb`.
        elf: the program; None: firmware.elf of the workspace.
        svd: description of the registers, for the register view; None: none.
        stlink_port, jtag_port: of `covp debug port`.
    """
    common: dict[str, Any] = {
        "type": "cortex-debug",
        "request": "launch",
        "cwd": "${workspaceFolder}",
        "executable": str(elf) if elf else "${workspaceFolder}/firmware.elf",
        "gdbPath": "gdb-multiarch",
        "toolchainPrefix": platform.core.gcc_prefix.removesuffix("-"),
        "runToEntryPoint": "main",
    }
    if svd is not None:
        common["svdFile"] = str(svd)
    server = {
        "name": f"{_MARK} debug gdb -p {platform.name}",
        "servertype": "external",
        "gdbTarget": gdb_target,
    }
    configurations = [server | common]
    openocd = _openocd(platform, stlink_port, jtag_port)
    if openocd is not None:
        name = f"{_MARK} debug port -p {platform.name}, OpenOCD"
        configurations.append({"name": name, "servertype": "openocd"} | openocd | common)
    document = {"version": "0.2.0", "configurations": configurations}
    return json.dumps(document, indent=4) + "\n"


def check_replaceable(path: Path) -> None:
    """Raise UsageError where a file has configurations that are not ours."""
    try:
        names = [one["name"] for one in json.loads(path.read_text())["configurations"]]
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        names = [""]
    if not all(str(name).startswith(f"{_MARK} ") for name in names):
        raise UsageError(
            "it has configurations that are not covp's and would be lost; give another "
            "path and copy what you need",
            where=path,
        )


def _openocd(platform: Platform, stlink_port: int, jtag_port: int) -> dict[str, Any] | None:
    """Return the keys of servertype openocd; None: no configuration file is known."""
    # without a model of its flash controller OpenOCD has to write the flash as memory
    programs = any(one.model.endswith("_flash") for one in platform.peripherals)
    commands = [] if programs else ["gdb_memory_map disable"]
    if platform.core.architecture == "riscv":
        return {
            "interface": "jtag",
            "openOCDPreConfigLaunchCommands": [f"set PORT {jtag_port}"],
            "configFiles": [str(_RISCV_CONFIG)],
            "openOCDLaunchCommands": commands,
            "preLaunchCommands": ["monitor arm semihosting enable"],
        }
    if platform.openocd is None:
        return None
    return {
        "interface": "swd",
        "configFiles": [platform.openocd.board],
        "openOCDLaunchCommands": [f"hla_stlink_backend tcp {stlink_port}", *commands],
        "preLaunchCommands": ["monitor arm semihosting enable"],
    }
