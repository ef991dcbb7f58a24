"""``covp openocd``: OpenOCD for a platform's board."""

from __future__ import annotations

import click

from covp.chip.platform_file import load_platform
from covp.cli import options
from covp.cli.main import until_ctrl_c
from covp.cli.output import echo
from covp.device.openocd import DEFAULT_PORT
from covp.device.openocd_server import OpenOcdServer


@click.group()
def openocd() -> None:
    """Flash and inspect boards through OpenOCD."""


@openocd.command()
@options.platform
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of the Tcl server; 0 takes a free one.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="FILE",
    help="An OpenOCD file instead of the platform's board file; several are taken in order.",
)
@click.option(
    "-c",
    "--command",
    "commands",
    multiple=True,
    metavar="CMD",
    help="Command to run before OpenOCD's init.",
)
def start(platform: str, port: int, configs: tuple[str, ...], commands: tuple[str, ...]) -> None:
    """Start OpenOCD with the platform's board file and keep it running until Ctrl-C."""
    chosen = load_platform(platform)
    with OpenOcdServer(chosen, port, configs, commands) as server, until_ctrl_c():
        echo("OpenOCD has reached the board; run models on it with")
        echo(f"  covp run kws -p {platform} --device openocd:127.0.0.1:{server.port}")
        server.wait()
