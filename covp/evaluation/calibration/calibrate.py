"""`calibrate`: a core's timing model from measurements alone, with its error on other programs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from covp.base.temporary import temporary_folder
from covp.chip.cores import timing_files
from covp.chip.platform_file import Platform
from covp.device.base import LowLevelDevice
from covp.device.machine.native_caches import uncached_waits
from covp.device.timing.instructions import load_instructions
from covp.device.timing.model import TimingFile, instruction_sets, load_file
from covp.errors import UsageError
from covp.evaluation.calibration.costs import Costs, PreparedProgram, classifier
from covp.evaluation.calibration.fit import fit
from covp.evaluation.calibration.measure import (
    GENERIC,
    Measured,
    MeasuredPrograms,
    measure,
    no_counter,
    simulate,
    write_model,
)
from covp.evaluation.calibration.programs import (
    ROUNDS,
    LoopProgram,
    hazard_programs,
    random_program,
    without_divisions,
)

FITTED_WAITS = ((1, 0), (3, 0), (0, 1), (2, 2))
"""Wait states of flash and RAM, beside none, that RTL is measured with."""
_STEP = 0.001
"""Step to which the stated error is rounded up."""


@dataclass(frozen=True)
class CalibrationRow:
    """A program, as measured and by the model.

    Attributes:
        name: of the program.
        is_skewed: its loop starts in the middle of a word.
        measured, fitted: cycles of a round of its loop.
    """

    name: str
    is_skewed: bool
    measured: float
    fitted: float

    @property
    def error(self) -> float:
        """Relative: positive where the model takes too many cycles."""
        return self.fitted / self.measured - 1


@dataclass(frozen=True)
class Calibration:
    """A model that was fitted, and how good it is.

    Attributes:
        model: the content of its file.
        start: name of the model whose figures it began with.
        kept: classes of instructions that no program executed: their figures are those of the
            start.
        rejected: hazards that the core has no instructions for.
        hazards, fitted: programs that the model was fitted to: hazards, random ones.
        left_out: random programs that the model knows nothing of.
        by_memory: the largest relative error over these with other memories, in the words of
            `Platform.wait_states`.
    """

    model: TimingFile
    start: str
    kept: tuple[str, ...]
    rejected: tuple[str, ...]
    hazards: tuple[CalibrationRow, ...]
    fitted: tuple[CalibrationRow, ...]
    left_out: tuple[CalibrationRow, ...]
    by_memory: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean_error(self) -> float:
        """Mean relative error over the programs that were left out."""
        return sum(abs(row.error) for row in self.left_out) / len(self.left_out)

    @property
    def worst_error(self) -> float:
        """Largest relative error over the programs that were left out."""
        return abs(self.worst.error)

    @property
    def worst(self) -> CalibrationRow:
        """The program that was left out and that the model is farthest from."""
        return max(self.left_out, key=lambda row: abs(row.error))

    def write(self, path: Path) -> None:
        """Write the model as a YAML file, whole or not at all. Raises OSError."""
        write_model(self.model, path)


def calibrate(
    platform: Platform,
    device: LowLevelDevice,
    start: str | None = None,
    programs: int = 24,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
    others: Sequence[tuple[Platform, LowLevelDevice]] = (),
) -> Calibration:
    """Fit a timing model to a device.

    Args:
        platform: its core and memory map.
        device: measures cycles: RTL, or a board with a cycle counter.
        start: name of a model whose structure and figures are where the search begins; None: that
            of the platform's core, and all others of its instruction set.
        programs: random programs that the model is fitted to; as many others are left out.
        seed: of the random programs.
        report: is called with a line for each step.
        others: the platform with other wait states, and devices with these.

    Raises:
        UsageError: the device does not measure cycles.
        PlatformError: there is no such model, or it is of another instruction set.
        DeviceError: the way to the device failed, or a program did.
    """
    names = [start] if start else _starts(platform)
    models = {name: first_model(platform, name)[1] for name in names}
    known, unknown = _programs(platform, programs, seed)
    written, less = [*known, *unknown], [*map(without_divisions, known), *unknown]
    found = measure(platform, device, written, report)
    count = len(found.programs) - programs
    more = [(one, measure(one, where, less, report)) for one, where in others]
    result = fit(
        found.programs[:count],
        list(models.values()),
        uncached_waits(platform),
        [(uncached_waits(one), measured.programs[:count]) for one, measured in more],
        report,
    )
    report("simulating what was left out")
    model = result.model
    rows = _rows(found.programs[:count], model, platform)
    is_random = [one.program.is_random for one in found.programs[:count]]
    calibration = Calibration(
        model,
        next(name for name, start in models.items() if start is result.start),
        tuple(sorted(set(_figures(result.start)) - result.known)),
        found.rejected,
        tuple(itertools.compress(rows, (not one for one in is_random))),
        tuple(itertools.compress(rows, is_random)),
        _simulated(found, written, model, platform, programs),
        {
            one.wait_states: _worst(_simulated(measured, less, model, one, programs))
            for one, measured in more
        },
    )
    return _label(calibration, found, platform.wait_states)


def _worst(rows: Sequence[CalibrationRow]) -> float:
    return max(abs(row.error) for row in rows)


def _starts(platform: Platform) -> list[str]:
    """Return the names of the models that a search may begin with, that of the core first."""
    sets = instruction_sets(platform.core)
    own = platform.core.timing or GENERIC[platform.core.architecture]
    alike = (name for name in timing_files() if load_file(name).instructions in sets)
    return list(dict.fromkeys([own, *alike]))


def first_model(platform: Platform, start: str | None) -> tuple[str, TimingFile]:
    """Name and content of the model that the search begins with.

    Args:
        platform: of the core.
        start: name or path of a model; None: that of the core.

    Raises:
        UsageError: the core has no cycle counter, or the model is of another instruction set.
        PlatformError: there is no such model.
    """
    if not platform.core.isa.counts_cycles:
        raise no_counter(platform, f"has no cycle counter: {platform.core.name}")
    name = start or platform.core.timing or GENERIC[platform.core.architecture]
    model = load_file(name)
    known = instruction_sets(platform.core)
    if model.instructions not in known:
        raise UsageError(
            f"--start {name}: its instructions are {model.instructions or 'any'}, those of "
            f"{platform.core.name} are {' or '.join(known)}; take "
            f"{GENERIC[platform.core.architecture]}"
        )
    return name, model if platform.core.has("fpu") else _without_floats(model)


def _without_floats(model: TimingFile) -> TimingFile:
    """Return the model without figures of instructions that use float registers."""
    known = load_instructions(model.instructions or "")
    floats = {*known.class_names} - {one.name for one in known.classes if not one.has_floats}
    content = {key: getattr(model, key) for key in model.by_class}
    kept = {
        key: {name: value for name, value in names.items() if name not in floats}
        if isinstance(names, dict)
        else tuple(name for name in names if name not in floats)
        for key, names in content.items()
    }
    return msgspec.structs.replace(model, **kept)


def _programs(
    platform: Platform, count: int, seed: int
) -> tuple[list[LoopProgram], list[LoopProgram]]:
    """Return programs for the fit, and as many random ones again that are left out."""
    source = random.Random(seed)
    names = (f"random {n}" for n in range(2 * count))
    mixes = [random_program(platform.core, source, name) for name in names]
    return [*hazard_programs(platform.core), *mixes[:count]], mixes[count:]


def _simulated(
    found: MeasuredPrograms,
    written: Sequence[LoopProgram],
    model: TimingFile,
    platform: Platform,
    count: int,
) -> tuple[CalibrationRow, ...]:
    """Return the last programs beside what the virtual device says of them with a model."""
    with temporary_folder("calibrate") as folder:
        path = Path(folder) / "model.yaml"
        write_model(model, path)
        timed = msgspec.structs.replace(platform, timing=str(path))
        cycles = simulate(timed, written, count)
    return tuple(
        CalibrationRow(one.program.name, one.program.is_skewed, one.cycles / ROUNDS, ours / ROUNDS)
        for one, ours in zip(found.programs[-count:], cycles, strict=True)
    )


def _rows(
    programs: Sequence[Measured], model: TimingFile, platform: Platform
) -> tuple[CalibrationRow, ...]:
    name_of = classifier(model)
    waits = uncached_waits(platform)
    costs = Costs([PreparedProgram(one, name_of, waits) for one in programs])
    return tuple(
        CalibrationRow(
            one.program.name, one.program.is_skewed, one.cycles / ROUNDS, float(cycles) / ROUNDS
        )
        for one, cycles in zip(programs, costs.time(model).cycles, strict=True)
    )


def _figures(model: TimingFile) -> list[str]:
    """Return classes that the model gives figures of."""
    return [name for names in model.by_class.values() for name in names]


def _label(found: Calibration, measured: MeasuredPrograms, memory: str) -> Calibration:
    """Return the calibration whose model states its source, error and memory."""
    source = measured.source
    by = {"rtl": f"RTL of {source.model}", "measured": source.model}[source.kind]
    where = f" with {source.assumes}" if source.assumes else ""
    where += f" and {len(found.by_memory)} other kinds" if found.by_memory else ""
    text = (
        f"covp calibrate, fitted to the {by}{where}: {len(found.hazards)} hazards and "
        f"{len(found.fitted)} random programs; error: {len(found.left_out)} others"
    )
    assumes = f"{', '.join(found.kept)} as in {found.start}" if found.kept else ""
    model = msgspec.structs.replace(
        found.model,
        name="",
        source=text,
        assumes=assumes,
        error=_stated(found.worst_error),
        memory=memory,
        errors={where: _stated(error) for where, error in found.by_memory.items()},
    )
    return replace(found, model=model)


def _stated(error: float) -> float:
    """Return an error, rounded up."""
    return round(max(_STEP, math.ceil(error / _STEP) * _STEP), 6)
