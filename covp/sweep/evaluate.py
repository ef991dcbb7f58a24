"""`evaluate_points`: the rows of points, in a worker process or in this one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from covp.cache import content_key
from covp.errors import CovpError
from covp.evaluation import Build, Evaluation, Sample, build, recorded_schedules
from covp.evaluation.area import estimate_areas
from covp.evaluation.data import Data, Scores, accuracy_of
from covp.evaluation.energy import Energy
from covp.evaluation.runner import measured
from covp.evaluation.varied import varied
from covp.graph.graph import Graph
from covp.models import find_model, load_model
from covp.sweep.content import data_content, model_content
from covp.sweep.points import Point, Row


def evaluate_points(points: Sequence[Point]) -> list[Row]:
    """The rows of points, in their order.

    A function of the points alone: whoever calls it, in whatever process and together with
    whatever other points, gets the same rows. A point that fails is a row with the reason.
    """
    return [_row(point) for point in points]


def _row(point: Point) -> Row:
    try:
        result = _evaluated(point)
        figures = {**_figures(result), **_accuracy(result.build, point)}
    except CovpError as error:
        figures = {"status": "failed", "reason": " ".join(str(error).split())}
    return Row(**_stated(point), **figures)


def _stated(point: Point) -> dict[str, Any]:
    """What a row says of its point."""
    return {
        "key": point.key,
        "model": point.model,
        "platform": point.platform,
        "accelerators": point.accelerators,
        "toolchain": point.toolchain,
        "optimize": point.optimize,
        "vary": point.values,
        "seed": point.seed,
        "covp_version": version("covp"),
    }


def _evaluated(point: Point) -> Evaluation:
    """The point, built and run."""
    platform, units = varied(point.platform, point.accelerators, point.values)
    graph, sample = _model(point.model, point.seed)
    made = build(
        graph,
        platform,
        units,
        toolchain=point.toolchain,
        schedules=recorded_schedules(platform, point.toolchain, point.optimize),
        allow_unused=True,
        allow_slower=True,
    )
    return measured(made, sample)[0]


def _model(name: str, seed: int) -> tuple[Graph, Sample]:
    """A model with random inputs and the reference's outputs; computed once for all its points."""
    path = find_model(name).path
    state = path.stat()
    return _model_at(name, seed, (str(path), state.st_mtime_ns, state.st_size))


@functools.lru_cache(maxsize=4)
def _model_at(name: str, seed: int, state: tuple[str, int, int]) -> tuple[Graph, Sample]:
    graph = load_model(name)
    return graph, Sample.random(graph, seed)


def _figures(result: Evaluation) -> dict[str, Any]:
    """The figures of a run."""
    profile, memory, energy = result.profile, result.memory, result.energy
    source = profile.sources.cycles
    offloads = [entry.offload for entry in profile.layers if entry.offload is not None]
    return {
        "how": "run",
        "instructions": profile.instructions,
        "cycles": profile.cycles,
        "seconds": profile.seconds,
        "waiting": sum(offload.waiting for offload in offloads),
        "energy_j": energy.joules if isinstance(energy, Energy) else None,
        "area_um2": _area(result),
        "flash_bytes": memory.flash_bytes,
        "ram_bytes": memory.ram_bytes,
        "arena_bytes": memory.arena_bytes,
        "mac_coverage": result.mac_coverage,
        "matches_reference": result.matches_reference,
        "cycles_model": source.model if source else None,
        "cycles_error": source.error if source else None,
        "model_source": result.source,
    }


def _accuracy(made: Build, point: Point) -> dict[str, float | None]:
    """Over the samples of a point; nothing without any."""
    if point.data is None:
        return {}
    if point.data.on == "reference":
        scores = _by_reference(made, point.model, point.data)
    else:
        scores = accuracy_of(made, point.data).scores
    error = scores.mean_error
    return {"accuracy": scores.accuracy, "mean_error": error.absolute if error else None}


_scores: dict[str, Scores] = {}
"""Of the reference, by the content of model and data."""


def _by_reference(made: Build, model: str, data: Data) -> Scores:
    """Computed once for all designs of a model: the reference knows nothing of them."""
    key = content_key(model_content(model), data_content(data))
    if key not in _scores:
        _scores[key] = accuracy_of(made, data).scores
    return _scores[key]


def _area(result: Evaluation) -> float | None:
    """Of all accelerators together; None where it is not known of one of them."""
    areas = estimate_areas(result.program)
    if len(areas) < len(result.program.accelerators):
        return None
    return sum(area.um2 for area in areas)
