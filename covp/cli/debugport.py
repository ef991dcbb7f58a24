"""``covp debug port``: the debug hardware of a virtual board, for the real OpenOCD."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

import covp.device.debug
from covp.chip.platform_file import Platform, load_platform
from covp.cli import options
from covp.cli.main import until_ctrl_c, wait_for_ctrl_c
from covp.cli.output import echo
from covp.device.debug.remote_bitbang import PROTOCOLS, debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice

_PORTS = {"stlink": 7184, "jtag": 9824}
_JTAG_TARGETS = {"stm32f7": "target/stm32f7x.cfg", "stm32l4": "target/stm32l4x.cfg"}


@click.command()
@options.platform
@click.option(
    "--protocol",
    type=click.Choice(sorted(PROTOCOLS)),
    help="Default: stlink for Cortex-M, jtag (remote_bitbang) for RISC-V.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Default: 7184 or 9824; 0 takes a free one."
)
def debugport(platform: str, protocol: str | None, host: str, port: int | None) -> None:
    """Serve a virtual board's debug port until Ctrl-C."""
    chosen = load_platform(platform)
    name = protocol or ("stlink" if chosen.core.architecture == "arm" else "jtag")
    with VirtualDevice(chosen) as device, DebugTarget(device) as target:
        say = partial(echo, err=True)
        handler = debug_port(name, target, say)
        at = _PORTS[name] if port is None else port
        with DebugServer(handler, host, at, say) as server, until_ctrl_c():
            echo(f"{chosen.name}: {name} at {host}:{server.port}; start OpenOCD with")
            echo(f"  {openocd_line(chosen, name, server.port)}")
            wait_for_ctrl_c()


def openocd_line(platform: Platform, protocol: str, port: int) -> str:
    """Return the command of a user whose board this is, with the cable replaced."""
    if protocol == "stlink":
        if platform.openocd is None:
            files = '-f interface/stlink.cfg -c "transport select hla_swd" -f target/YOURS.cfg'
        else:
            files = f"-f {platform.openocd.board}"
        return f'openocd {files} -c "hla_stlink_backend tcp {port}"'
    if platform.core.architecture == "riscv":
        config = Path(covp.device.debug.__file__).parent / "configs" / "riscv.cfg"
        return f'openocd -c "set PORT {port}" -f {config}'
    adapter = f"adapter driver remote_bitbang; remote_bitbang port {port}"
    return (
        f'openocd -c "{adapter}; remote_bitbang host 127.0.0.1; transport select jtag" '
        f"-f {_JTAG_TARGETS.get(platform.board, 'target/YOURS.cfg')}"
    )
