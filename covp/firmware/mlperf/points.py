"""`measure`: one model on one platform with one set of accelerators: latency, energy, memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.base.request import BuildOptions, change_options
from covp.chip.platform_file import Platform
from covp.device.stop import Source
from covp.evaluation import Build, Evaluation, Sample, build
from covp.evaluation.data.tasks import Task
from covp.evaluation.energy import Energy
from covp.evaluation.runner import measure_inference
from covp.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class MlperfPoint:
    """One of the points of a sweep. Points pickle.

    Attributes:
        graph: the model; as it is, or in its streaming form.
        platform: that runs it.
        accelerators: beside its core; empty: the core alone.
        task: the benchmark that the model is for, if any.
    """

    graph: Graph
    platform: Platform
    accelerators: tuple[str, ...]
    task: Task | None

    def __str__(self) -> str:
        units = "".join(f" + {name}" for name in self.accelerators)
        return f"{self.graph.name} on {self.platform.name}{units}"


@dataclass(frozen=True)
class Performance:
    """The cost of one inference; of a network on a stream, of one new row.

    Attributes:
        latency_us: virtual time, microseconds; None where the platform has no timing model.
        cycles: of the core.
        cycles_source: where they come from.
        instructions: that the core retired, exact.
        energy_uj: estimated, microjoules; None where a part of it is not known.
        energy_reason: why there is no estimate, where something can be done.
        flash_bytes, ram_bytes, arena_bytes: of the firmware.
        mac_coverage: see `covp.evaluation.Evaluation.mac_coverage`.
        matches_reference: whether the outputs are the reference's.
        toolchain: compiler and version.
        warnings: one line each.
    """

    latency_us: float | None
    cycles: int | None
    cycles_source: Source | None
    instructions: int | None
    energy_uj: float | None
    energy_reason: str | None
    flash_bytes: int
    ram_bytes: int
    arena_bytes: int
    mac_coverage: float | None
    matches_reference: bool
    toolchain: str
    warnings: tuple[str, ...]

    @staticmethod
    def of(result: Evaluation) -> Performance:
        """Return the performance from an inference's figures."""
        profile, memory, energy = result.profile, result.memory, result.energy
        return Performance(
            None if profile.seconds is None else profile.seconds * 1e6,
            profile.cycles,
            profile.sources.cycles,
            profile.instructions,
            energy.joules * 1e6 if isinstance(energy, Energy) else None,
            energy if isinstance(energy, str) else None,
            memory.flash_bytes,
            memory.ram_bytes,
            memory.arena_bytes,
            result.mac_coverage,
            result.matches_reference,
            result.toolchain,
            result.warnings,
        )


@dataclass(frozen=True, eq=False)
class MeasureJob:
    """Arguments of `measure`. Jobs pickle.

    Attributes:
        point: that is measured.
        options: of the compilation.
        sample: the input; None: random.
        seed: of random inputs.
    """

    point: MlperfPoint
    options: BuildOptions
    sample: NDArray[np.int8] | None
    seed: int = 0


def measure(job: MeasureJob) -> tuple[Performance, Build]:
    """Compile a model, run one inference, and compare its outputs with the reference's.

    Returns:
        Its figures, and the build that was measured.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    point = job.point
    options = change_options(job.options, {"allow_unused": True})
    made = build(point.graph, point.platform, point.accelerators, options)
    if job.sample is None:
        sample = Sample.random(point.graph, job.seed)
    else:
        sample = Sample.of(point.graph, [job.sample], "dataset")
    result, _ = measure_inference(made, sample)
    return Performance.of(result), result.build
