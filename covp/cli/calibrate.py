"""``covp calibrate``: fit a timing model to a core's real cycles."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import click

from covp.chip.platform_file import Platform, load_platform
from covp.cli import options
from covp.cli.output import echo, print_json, print_table, progress
from covp.device.base import LowLevelDevice
from covp.errors import AcceleratorError, UsageError
from covp.evaluation.calibration.calibrate import (
    FITTED_WAITS,
    Calibration,
    CalibrationRow,
    first_model,
)
from covp.evaluation.calibration.calibrate import calibrate as fitted
from covp.evaluation.calibration.document import Calibrated
from covp.evaluation.further_documents import CalibratedUnit
from covp.report.table import Table, Value, numbers, texts
from covp.runtime.devices import open_device


@click.command()
@click.argument("platform", required=False)
@click.option(
    "-a",
    "--accelerator",
    "unit",
    metavar="ACCEL",
    help="Fit this unit's formula of time to its Verilog instead, with --device rtl.",
)
@click.option(
    "--device",
    required=True,
    metavar="DEVICE",
    help="What measures cycles: rtl, or a board: openocd:HOST:PORT, gdb:HOST:PORT.",
)
@click.option(
    "--start",
    metavar="MODEL",
    help="Timing model that the search begins with: a name or the path of a YAML file; default: "
    "that of the platform's core, then all others of its instruction set.",
)
@click.option(
    "--programs",
    type=click.IntRange(1, 200),
    default=24,
    show_default=True,
    help="Random programs to fit to; as many others are left out, to state the error.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="File to write; default: PLATFORM.yaml, or timing.yaml of a core's own folder.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the random programs.",
)
@options.as_json
def calibrate(
    platform: str | None,
    unit: str | None,
    device: str,
    start: str | None,
    programs: int,
    output: Path | None,
    force: bool,
    seed: int,
    as_json: bool,
) -> int:
    """Fit a timing model of PLATFORM's core, or of a unit, to cycles that were measured.

    Small generated programs run on the core's RTL or on a board, one for each hazard of a pipeline
    and random mixes; on RTL with several wait states, too. The model is written as a YAML file,
    with its error on programs that it was not fitted to; a platform file names it with
    `timing: FILE`.

    Of a unit (-a) the jobs of `covp verify --against rtl` are measured, and the method timing() of
    its class is printed, with its error on jobs that were left out.
    """
    if unit is not None:
        if platform is not None or device != "rtl":
            raise UsageError("-a ACCEL: a unit is measured without a platform, by --device rtl")
        return _fit_unit(unit, seed, as_json)
    if platform is None:
        raise UsageError("name a PLATFORM, or a unit with -a")
    board = load_platform(platform)
    path = output or _default(board)
    _check_output(path, platform, force)
    first_model(board, start)  # before anything runs
    with ExitStack() as stack:
        opened = _open(device, board, stack)
        others = [(one, _open(device, one, stack)) for one in _others(device, board)]
        advance = stack.enter_context(progress(f"measuring {board.name}", None))
        found = fitted(board, opened, start, programs, seed, lambda text: advance(text), others)
    _check_output(path, platform, force)
    found.write(path)
    if as_json:
        print_json(Calibrated.of(found, board.name, device, path))
    else:
        _print(found, path)
    return 0


def _fit_unit(unit: str, seed: int, as_json: bool) -> int:
    """Print the formula of a unit's time."""
    from covp.accelerator.declared import Accelerator
    from covp.accelerator.registry import find_backend
    from covp.testing.verify import verify
    from covp.testing.verify.unit_time import fit_unit_time

    backend = find_backend(unit)
    if not isinstance(backend, Accelerator):
        raise UsageError(f"accelerator {backend.name} has no method timing() that could be fitted")
    with progress(f"measuring {backend.name}", None) as advance:
        verdict = verify(unit, seed=seed, progress=lambda text: advance(text), against_rtl=True)
    if verdict.failure and not verdict.is_of_time:
        raise AcceleratorError(f"{verdict.failure}: covp verify {unit} --against rtl shows more")
    found = fit_unit_time(backend, verdict.times)
    method = found.method(backend.job)
    if as_json:
        print_json(
            CalibratedUnit(
                accelerator=unit,
                jobs=found.jobs,
                left_out=found.left_out,
                mean=found.mean,
                worst=found.worst,
                total=found.total,
                method=method,
            )
        )
    else:
        echo(
            f"fitted to {found.jobs} jobs; for the class of {unit}, with JobTiming and TimingCheck "
            f"from covp.accelerator:\n\n{method.rstrip()}"
        )
    return 0


def _open(device: str, board: Platform, stack: ExitStack) -> LowLevelDevice:
    opened = open_device(device, board)
    if opened.abilities.closing is not None:
        stack.callback(opened.abilities.closing.close)
    return opened


def _others(device: str, board: Platform) -> list[Platform]:
    """Return the board with other wait states, which RTL can have."""
    if device != "rtl" or board.caches:
        return []
    others = (board.with_waits(*waits) for waits in ((0, 0), *FITTED_WAITS))
    return [one for one in others if one.wait_states != board.wait_states]


def _default(board: Platform) -> Path:
    """Return the file to write: of a core in a user's folder its timing model."""
    core = board.core
    return core.folders[0] / "timing.yaml" if core.content else Path(f"{board.name}.yaml")


def _check_output(path: Path, platform: str, force: bool) -> None:
    """Check that the file may be written, before anything runs."""
    if not path.parent.is_dir():
        raise UsageError(f"--output {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise UsageError(f"--output {path}: that is a folder; name a file in it")
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--output {path}: a timing model is a .yaml file")
    if path.exists() and Path(platform).exists() and path.samefile(platform):
        raise UsageError(f"{path} is the platform file itself; name another one with --output")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already; --force overwrites it, --output names another")


def _print(found: Calibration, path: Path) -> None:
    columns = ["measured", "model", "measured, off a word", "model, off a word"]
    rows = _pairs(found.hazards)
    print_table(Table("cycles a round", [*texts("hazard"), *numbers(*columns)], rows))
    if found.rejected:
        echo(f"not measured, the core has no such instructions: {', '.join(found.rejected)}")
    if found.kept:
        echo(f"as in {found.start}, not measured: {', '.join(found.kept)}")
    echo(
        f"{len(found.left_out)} programs left out: mean error {found.mean_error:.2%}, worst "
        f"{found.worst_error:.2%} ({found.worst.name})"
    )
    for memory, error in found.by_memory.items():
        echo(f"  {memory}: worst {error:.2%}")
    echo(f"wrote {path}")


def _pairs(rows: Iterable[CalibrationRow]) -> list[list[Value]]:
    """Return one row per hazard: where its loop starts with a word, and off one."""
    found: dict[str, list[Value]] = {}
    for row in rows:
        cells = found.setdefault(row.name, [row.name, None, None, None, None])
        place = 3 if row.is_skewed else 1
        cells[place : place + 2] = [f"{row.measured:.2f}", f"{row.fitted:.2f}"]
    return list(found.values())
