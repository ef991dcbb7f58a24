"""``covp firmware``: a linked program on the virtual board, until it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from covp.accelerator.registry import find_backends
from covp.chip.platform_file import load_platform
from covp.cli import options, semihosting
from covp.cli.output import echo
from covp.cli.serial_lines import SerialLines
from covp.codegen.offload import accelerator_places
from covp.codegen.program import AcceleratorInstance
from covp.device.debug.intervals import Interval, measure_intervals
from covp.device.debug.program_file import free_ram, load_elf, run_firmware
from covp.device.debug.rtt import Rtt
from covp.device.semihosting import Semihosting
from covp.device.virtual import VirtualDevice
from covp.errors import UsageError
from covp.hardware.clock import Clock
from covp.hardware.serial_port import SerialFeed, SerialPort
from covp.runtime.accelerators import attach_accelerator

_POLLS_PER_SECOND = 10_000
"""Looks at the program's RTT buffers in a second of virtual time."""


@click.command()
@click.argument("elf", type=click.Path(path_type=Path))
@options.platform
@options.accelerators
@click.option(
    "--semihosting/--no-semihosting",
    "answers",
    default=True,
    show_default=True,
    help="Answer the program's semihosting calls; input and output are this terminal's.",
)
@semihosting.files
@semihosting.arguments
@click.option(
    "--serial-input",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Bytes for the board's first serial port; - is this terminal.",
)
@click.option(
    "--cycles-between",
    "marks",
    nargs=2,
    metavar="A B",
    help="Print what the program takes from A to B and end: symbols, addresses of instructions, or "
    "of peripherals' registers that it stores to.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Intervals of --cycles-between.",
)
@click.option("--rtt", is_flag=True, help="Print what the program writes to RTT channel 0.")
@click.option(
    "--timeout",
    type=options.Seconds(),
    default=300.0,
    show_default=True,
    help="Seconds of host time after which a program that has not ended is stopped.",
)
def firmware(
    elf: Path,
    platform: str,
    accelerators: tuple[str, ...],
    answers: bool,
    files: Path | None,
    arguments: str,
    serial_input: Path | None,
    marks: tuple[str, str] | None,
    times: int,
    rtt: bool,
    timeout: float,
) -> int:
    """Run the program ELF on a virtual board until it ends.

    What it sends over serial ports is printed. It ends with a semihosting exit, or when main of a
    program with covp's start-up code returns; a status that is not 0 is a failure.
    """
    chosen = load_platform(platform)
    if chosen.further_cores:
        raise UsageError(
            f"{chosen.name} has several cores, and one file is the program of one: take "
            "`covp multicore`"
        )
    output = SerialLines()
    with VirtualDevice(chosen) as device:
        ports = output.listen(device)
        _attach(device, accelerators)
        program = load_elf(device, elf)  # first: errors of the file come before all else
        if answers:
            heap = free_ram(chosen, program)
            host = Semihosting(semihosting.terminal(), files, arguments, heap=heap)
            device.board.set_semihosting(host)
        if serial_input is not None:
            if not ports:
                raise UsageError(f"--serial-input: {chosen.name} has no serial port")
            _feed(ports[0], device.clock, serial_input)
        channels = Rtt(device.read, device.write, chosen.memory) if rtt else None
        if channels is not None:
            _follow(channels, device.clock, output)
        found: list[Interval] = []
        try:
            if marks:
                found = measure_intervals(device, elf, marks, times, timeout)
            else:
                ended = run_firmware(device, elf, timeout)
        finally:
            if channels is not None:
                output.write(channels.read())
            output.flush()
        cycles = device.sources.cycles
    if marks:
        for one in found:
            echo(f"{one.instructions:,} instructions, {one.cycles:,} cycles")
        echo(
            f"{elf.name} on {chosen.name} from {marks[0]} to {marks[1]}; cycles: {cycles}", err=True
        )
        return 0
    echo(
        f"{elf.name} on {chosen.name}: status {ended.status}, {ended.instructions:,} instructions, "
        f"{ended.cycles:,} cycles ({cycles}), {ended.cycles / chosen.clock_hz:.6f} s",
        err=True,
    )
    return int(ended.status != 0)


def _attach(device: VirtualDevice, specs: Sequence[str]) -> None:
    """Attach accelerators where programs that are compiled with the same ``-a`` expect them."""
    backends = find_backends(specs)
    places = accelerator_places(device.platform, len(backends))
    for backend, (base, irq) in zip(backends, places, strict=True):
        attach_accelerator(device.board, AcceleratorInstance(backend.name, backend, base, irq, ()))


def _feed(port: SerialPort, clock: Clock, file: Path) -> None:
    """Feed a port with a file's content, or with this terminal's input as it comes."""
    if str(file) == "-":
        SerialFeed(port, clock, sys.stdin.buffer.readline)
        return
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=file) from None
    clock.at(clock.now, lambda: port.feed(data))  # after the reset that begins the run


def _follow(channels: Rtt, clock: Clock, output: SerialLines) -> None:
    """Print channel 0 from time to time, in virtual time."""

    def look() -> None:
        output.write(channels.read())
        clock.at(clock.now + clock.hertz // _POLLS_PER_SECOND, look)

    clock.at(clock.now, look)
