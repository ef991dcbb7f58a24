"""``covp board``: a virtual board for the official MLPerf Tiny runner."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click

from covp.base.request import BuildOptions
from covp.chip.platform_file import load_platform
from covp.cli import options
from covp.cli.cost_reports import energy_lines
from covp.cli.groups import GroupedCommand
from covp.cli.main import until_ctrl_c
from covp.cli.output import echo, print_json, warn
from covp.cli.provenance import model_note
from covp.evaluation import Build, build
from covp.firmware.document import BoardServed, StationServed, UsbNumbers
from covp.firmware.mlperf.benchmarks import BENCHMARKS
from covp.firmware.mlperf.board import USB_PRODUCT, USB_VENDOR, BenchmarkBoard, PaceName
from covp.firmware.mlperf.energy_station import EnergyStation
from covp.firmware.mlperf.firmware import Mode, build_firmware
from covp.firmware.mlperf.official import run_official
from covp.firmware.mlperf.station import WakeWordStation
from covp.firmware.mlperf.wake_word import build_wake_word, is_wake_word


@click.command(cls=GroupedCommand, context_settings={"allow_interspersed_args": True})
@options.model
@click.argument("runner_arguments", nargs=-1)
@options.platform
@options.accelerators
@options.build_options()
@click.option(
    "--benchmark",
    type=click.Choice(sorted(BENCHMARKS)),
    help="What MODEL is for; by default by the zoo's name, or by its input and output.",
)
@click.option(
    "--pace",
    type=click.Choice(["fast", "real"]),
    default="fast",
    show_default=True,
    help="As fast as the emulator goes, or never ahead of virtual time.",
)
@click.option(
    "--mode",
    type=click.Choice(["performance", "energy"]),
    default="performance",
    show_default=True,
    help="Mode of the runner; `energy` estimates it with the runner's interface board and monitor.",
)
@click.option(
    "--card",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="MODEL is the streaming wake word: the interface board plays the waves in DIR.",
)
@click.option(
    "--runner",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Let the official runner in DIR test the board; its arguments follow after --.",
)
@click.option(
    "--runner-python",
    default=None,
    metavar="PYTHON",
    help="The interpreter that has the runner's requirements; by default covp's own.",
)
@options.as_json
def board(
    model: str,
    runner_arguments: tuple[str, ...],
    platform: str,
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    benchmark: str | None,
    pace: PaceName,
    mode: Mode,
    card: Path | None,
    runner: Path | None,
    runner_python: str | None,
    as_json: bool,
) -> int:
    """Serve MODEL on a virtual board with MLPerf Tiny's serial protocol, until Ctrl-C."""
    if runner_arguments and runner is None:
        raise click.UsageError(f"{runner_arguments[0]!r}: arguments of the runner need --runner")
    if runner is not None and as_json:
        raise click.UsageError("--json: with --runner standard output is the runner's")
    chosen = load_platform(platform)
    made = build(model, chosen, accelerators, build_options)
    warn(made.program.warnings)
    signal.signal(signal.SIGTERM, _interrupt)
    if card is not None:
        with WakeWordStation(made.program, build_wake_word(made), card) as station:
            if runner is not None:
                return run_official(station, runner, runner_arguments, runner_python)
            _announce_station(station, made, as_json)
            with until_ctrl_c():
                station.wait()
        return 0
    if benchmark is None and is_wake_word(made.program):
        raise click.UsageError(
            f"{made.model} listens: name the waves that it is played with --card"
        )
    firmware = build_firmware(made, benchmark, mode)
    with BenchmarkBoard(firmware, pace) as served:
        try:
            if runner is not None:
                with EnergyStation(served) if mode == "energy" else served as shown:
                    return run_official(shown, runner, runner_arguments, runner_python)
            _announce(served, made, as_json)
            with until_ctrl_c():
                served.wait()
        finally:
            echo("\n".join(_summary(served, mode)), err=True)
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End the command at SIGTERM as at Ctrl-C."""
    raise KeyboardInterrupt


def _announce(served: BenchmarkBoard, made: Build, as_json: bool) -> None:
    if note := model_note(made.source):
        echo(f"{made.model}: {note}", err=True)
    if not as_json:
        echo(served.path)
        return
    print_json(
        BoardServed(
            path=served.path,
            model=made.model,
            model_source=made.source,
            benchmark=served.firmware.benchmark.name,
            platform=made.platform.name,
            accelerators=made.accelerators,
            usb=UsbNumbers(USB_VENDOR, USB_PRODUCT),
            firmware=str(served.firmware.elf),
        )
    )


def _announce_station(station: WakeWordStation, made: Build, as_json: bool) -> None:
    if note := model_note(made.source):
        echo(f"{made.model}: {note}", err=True)
    if not as_json:
        for port in station.ports:
            echo(port)
        return
    print_json(
        StationServed(
            ports=station.ports,
            model=made.model,
            model_source=made.source,
            benchmark=station.benchmark_name,
            platform=made.platform.name,
            accelerators=made.accelerators,
            firmware=str(station.elf),
        )
    )


def _summary(served: BenchmarkBoard, mode: Mode) -> Iterator[str]:
    """Yield lines on what was measured; in energy mode the estimate for one inference too."""
    windows, simulated = served.windows, served.firmware.simulated
    if windows.inferences:
        mean = windows.microseconds / windows.inferences
        yield (
            f"{windows.inferences} inferences in {windows.count} windows, {mean:,.1f} us each in "
            "virtual time (emulated, not a submission)"
        )
    else:
        yield "no inference was measured"
    if mode == "energy":
        lines = list(energy_lines(simulated, verbose=True))
        name = simulated.program.platform.name
        yield from lines or [f"energy: not estimated: {name} says nothing of its energy"]
