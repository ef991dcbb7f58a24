"""`survey`: one model on several platforms: where it fits, what it costs there, what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.compile import ScheduleChoice
from covp.errors import AcceleratorError, CapacityError, PlatformError
from covp.evaluation.builder import Build, build
from covp.evaluation.check import BY_LAYERS, Level, checked_level
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import beside_source, by_layers, checked_inputs, measured
from covp.evaluation.sample import Sample
from covp.graph.graph import Graph
from covp.graph.models import as_graph
from covp.graph.readers import Shapes
from covp.runtime.allocator import RegionUse


@dataclass(frozen=True, eq=False)
class Trial:
    """A model on one of the platforms of a `survey`.

    Attributes:
        model: the zoo name, or the file's stem as a C identifier.
        platform: where it was tried.
        result: of one inference; None where the model cannot run.
        reason: why it cannot, in one line; None where it can.
        regions: of the platform's memory, with the program loaded; empty where it cannot run.
    """

    model: str
    platform: Platform
    result: Evaluation | None
    reason: str | None
    regions: tuple[RegionUse, ...]

    @property
    def fits(self) -> bool:
        """Whether the model can run there."""
        return self.result is not None

    def record(self) -> dict[str, Any]:
        """A row of the JSON document ``covp.survey/1``."""
        return {
            "model": self.model,
            "platform": self.platform.name,
            "fits": self.fits,
            "reason": self.reason,
            "mac_coverage": self.result.mac_coverage if self.result else None,
            "regions": [asdict(use) | {"free_bytes": use.free_bytes} for use in self.regions],
            "run": self.result.record() if self.result else None,
        }


def survey(
    model: Graph | str | Path,
    platforms: Sequence[Platform | str | Path],
    accelerators: Sequence[str | AcceleratorBackend] = (),
    *,
    toolchain: str = "zig",
    schedules: Callable[[Platform], ScheduleChoice | None] = lambda platform: None,
    device: str = "virtual",
    seed: int = 0,
    check: str | None = None,
    allow_slower: bool = False,
    overlap: bool = False,
    shapes: Shapes | None = None,
    states: Mapping[str, str] | None = None,
    streaming: bool | int = False,
) -> Iterator[Trial]:
    """Run a model on each of several platforms, on the same random inputs.

    The model is read once and the reference computed once. Accelerators that get no layer are no
    error here.

    Args:
        model, accelerators, allow_slower, overlap, shapes, states, streaming: as for
            `covp.compile`.
        platforms: platforms, names or the paths of YAML files.
        toolchain, device: as for `Session`.
        schedules: gives each platform's schedules, as for `covp.compile`.
        seed: of the inputs.
        check: as for `covp.evaluation.run`.

    Yields:
        A trial per platform, in their order, as soon as it is done.

    Raises:
        CovpError: what no other platform would change, such as a model that cannot be read.
    """
    boards = [load_platform(platform) for platform in platforms]
    graph = as_graph(model, shapes, states, streaming)
    level = checked_level(check, device)
    sample = Sample.random(graph, seed)
    samples = checked_inputs(graph, sample, level) if level in BY_LAYERS else [sample]
    if level == "none":
        samples = [sample.unchecked()]
    for board in boards:
        try:
            made = build(
                graph,
                board,
                accelerators,
                toolchain=toolchain,
                schedules=schedules(board),
                allow_unused=True,
                allow_slower=allow_slower,
                overlap=overlap,
            )
            trial = _run(made, samples, device, level if check in (None, "source") else None)
        except (CapacityError, PlatformError, AcceleratorError) as error:
            trial = Trial(graph.name, board, None, str(error), ())
        yield trial


def _run(made: Build, samples: Sequence[Sample], device: str, level: Level | None) -> Trial:
    """``level``: of a check whose source is judged; else None."""
    result, regions = measured(made, samples[0], device)
    if len(samples) > 1:
        result = by_layers(result, samples)
        result = result if level is None else beside_source(result, samples, level)
    return Trial(made.model, made.platform, result, None, regions)
