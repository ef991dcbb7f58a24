"""`survey`: one model on several platforms: where it fits, what it costs there, what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from covp.accelerator.backend import AcceleratorBackend
from covp.base.request import (
    DEFAULT_BUILD,
    DEFAULT_RUN,
    BuildOptions,
    Changes,
    Level,
    RunOptions,
    change_options,
    request,
)
from covp.building.builder import Build, build
from covp.building.schedules import schedules_of
from covp.chip.platform_file import Platform, load_platform
from covp.errors import AcceleratorError, CapacityError, CovpError, PlatformError
from covp.evaluation.check import BY_LAYERS
from covp.evaluation.documents import SurveyRegion, SurveyRow
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import (
    beside_source,
    by_layers,
    checked_inputs,
    level_of,
    measure_inference,
)
from covp.evaluation.sample import Sample
from covp.graph.graph import Graph
from covp.graph.models import as_graph
from covp.runtime.allocator import RegionUse


@dataclass(frozen=True, eq=False)
class Trial:
    """A model on one of the platforms of a `survey`.

    Attributes:
        model: the zoo name, or the file's stem as a C identifier.
        platform: where it was tried.
        result: of one inference; None where the model cannot run.
        error: why it cannot; None where it can.
        regions: of the platform's memory, with the program loaded; empty where it cannot run.
    """

    model: str
    platform: Platform
    result: Evaluation | None
    error: CovpError | None
    regions: tuple[RegionUse, ...]

    @property
    def fits(self) -> bool:
        """True if the model can run there."""
        return self.result is not None

    @property
    def reason(self) -> str | None:
        """Why the model cannot run there, in one line; None where it can."""
        return None if self.error is None else str(self.error)

    def record(self) -> SurveyRow:
        """Return the row of the JSON document ``covp.survey/1``."""
        return SurveyRow(
            model=self.model,
            platform=self.platform.name,
            fits=self.fits,
            reason=self.reason,
            mac_coverage=self.result.mac_coverage if self.result else None,
            regions=[
                SurveyRegion(
                    name=use.name,
                    kind=use.kind,
                    size_bytes=use.size_bytes,
                    used_bytes=use.used_bytes,
                    free_bytes=use.free_bytes,
                )
                for use in self.regions
            ],
            run=self.result.record() if self.result else None,
        )


def survey(
    model: Graph | str | Path,
    platforms: Sequence[Platform | str | Path],
    accelerators: Sequence[str | AcceleratorBackend] = (),
    build_options: BuildOptions = DEFAULT_BUILD,
    run_options: RunOptions = DEFAULT_RUN,
    **changes: Unpack[Changes],
) -> Iterator[Trial]:
    """Run a model on each of several platforms, on the same random inputs.

    The model is read once and the reference computed once. Accelerators that get no layer are no
    error here.

    Args:
        model, accelerators: as for `covp.compile`.
        platforms: platforms, names or the paths of YAML files.
        build_options, run_options: of each build and run.
        changes: other values of the options.

    Yields:
        A trial per platform, in their order, as soon as it is done.

    Raises:
        CovpError: what no other platform would change, such as a model that cannot be read.
    """
    build_options, run_options = request(build_options, run_options, changes)
    boards = [load_platform(platform) for platform in platforms]
    graph = as_graph(model, build_options)
    read = change_options(build_options.for_graph(), {"allow_unused": True})
    level = level_of(run_options)
    sample = Sample.random(graph, run_options.seed)
    samples = checked_inputs(graph, sample, level) if level in BY_LAYERS else [sample]
    if level == "none":
        samples = [sample.unchecked()]
    for board in boards:
        try:
            schedules = schedules_of(board, read, run_options.device)
            made = build(graph, board, accelerators, read, schedules=schedules)
            trial = _run(made, samples, run_options, level)
        except (CapacityError, PlatformError, AcceleratorError) as error:
            trial = Trial(graph.name, board, None, error, ())
        yield trial


def _run(made: Build, samples: Sequence[Sample], options: RunOptions, level: Level) -> Trial:
    result, regions = measure_inference(made, samples[0], options.device)
    if len(samples) > 1:
        result = by_layers(result, samples, options.sanitize, options.ubsan)
        if options.check in (None, "source"):
            result = beside_source(result, samples, level)
    return Trial(made.model, made.platform, result, None, regions)
