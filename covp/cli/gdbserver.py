"""``covp debug gdb``: a virtual device that GDB attaches to."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import click

from covp.base.cache import write_atomically
from covp.base.request import BuildOptions
from covp.chip.platform_file import Platform, load_platform
from covp.cli import options, semihosting
from covp.cli.groups import GroupedCommand
from covp.cli.main import until_ctrl_c, wait_for_ctrl_c
from covp.cli.output import echo, warn
from covp.cli.provenance import model_note
from covp.cli.serial_lines import SerialLines
from covp.codegen.program import Program
from covp.device.debug import launch
from covp.device.debug.gdb_stub import BUSY, GdbConsole, GdbStub
from covp.device.debug.program_file import free_ram, load_elf
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.semihosting import Semihosting
from covp.device.virtual import VirtualDevice
from covp.errors import UsageError
from covp.evaluation import Build, Sample, build
from covp.firmware import Project, link_project
from covp.hardware.svd import svd
from covp.runtime.accelerators import attach_accelerator


@click.command(cls=GroupedCommand)
@options.platform
@click.option("--elf", type=click.Path(path_type=Path), help="A program to start with.")
@click.option(
    "--model", metavar="MODEL", help="Start with this model as a program: one checked inference."
)
@options.accelerators
@options.build_options()
@options.seed
@semihosting.where
@semihosting.files
@semihosting.arguments
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=3333,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--svd",
    "svd_file",
    type=click.Path(path_type=Path),
    help="Write the peripherals' registers as CMSIS-SVD, for register views.",
)
@click.option(
    "--launch-json",
    type=click.Path(path_type=Path),
    help="Write the configurations of Visual Studio Code's cortex-debug, to .vscode/launch.json.",
)
def gdbserver(
    platform: str,
    elf: Path | None,
    model: str | None,
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    seed: int,
    where: str,
    files: Path | None,
    arguments: str,
    host: str,
    port: int,
    svd_file: Path | None,
    launch_json: Path | None,
) -> None:
    """Serve GDB on a virtual device until Ctrl-C."""
    chosen = load_platform(platform)
    if elf and model:
        raise UsageError("--elf and --model both name the program: give one of them")
    if accelerators and not model:
        raise UsageError("--accel says what takes a model's layers: it needs --model")
    with VirtualDevice(chosen) as device:
        program = None
        if model:
            made = build(model, chosen, accelerators, build_options)
            warn(made.program.warnings)
            elf, program = _firmware(device, made, seed), made.program
        loaded = load_elf(device, elf) if elf else None
        if launch_json:
            launch.check_replaceable(launch_json)
        if svd_file:
            _write(svd_file, svd(chosen, device.peripherals))
        serial = SerialLines()
        serial.listen(device)
        terminal = semihosting.terminal()
        console = GdbConsole(terminal) if where == "gdb" else None
        if where != "off":
            heap = free_ram(chosen, loaded) if loaded else None
            device.board.set_semihosting(
                Semihosting(console or terminal, files, arguments, heap=heap)
            )
        with DebugTarget(device) as target:
            if loaded is not None:
                target.write_register("pc", loaded.entry)  # as GDB's load does
            say = partial(echo, err=True)
            stub = GdbStub(target, say, console)
            with DebugServer(stub.serve, host, port, say, BUSY) as server, until_ctrl_c():
                at = f"{f'[{host}]' if ':' in host else host}:{server.port}"
                if launch_json:
                    _write(launch_json, launch.launch_json(chosen, at, elf, svd_file))
                _greet(chosen, at, elf, program)
                wait_for_ctrl_c()
        serial.flush()


def _firmware(device: VirtualDevice, made: Build, seed: int) -> Path:
    """Return the model's ELF file; its accelerators are on the bus."""
    elf = link_project(Project.of(made, Sample.random(made.graph, seed)))
    for accelerator in made.program.accelerators:
        attach_accelerator(device.board, accelerator)
    return elf


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode())
        path.chmod(0o644)  # the temporary file was for the user alone
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror or error}", where=path) from None


def _greet(platform: Platform, address: str, elf: Path | None, program: Program | None) -> None:
    echo(f"{platform.name} ({platform.core.name}) waits for GDB at {address}; Ctrl-C ends it")
    file = shlex.quote(str(elf)) if elf else "program.elf"
    echo(f'gdb-multiarch -ex "target remote {address}" {file}')
    if elf is None:
        echo("the flash is empty: `load` writes the program there")
    if program is not None:
        if note := model_note(program.graph.source):
            echo(f"{program.name}: {note}")
        layers = ", ".join(layer.function for layer in program.layers)
        echo(f"break in main, covp_exit, or a layer: {layers}")
        echo("in covp_exit, covp_exit_status is the number of wrong output bytes")
