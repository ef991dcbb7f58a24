"""`build_and_run`: one design, its figures, and its trace where others are retimed."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from covp.accelerator.parameters import Value
from covp.base.cache import content_key
from covp.building.schedules import schedules_of
from covp.chip.platform_file import load_platform
from covp.errors import CovpError
from covp.evaluation import Build, Evaluation, Sample, build
from covp.evaluation.data import Data, Scores, accuracy_of
from covp.evaluation.energy import Energy
from covp.evaluation.renewed import renew_build
from covp.evaluation.runner import measure_inference
from covp.evaluation.varied import PLATFORM, vary_design
from covp.exploration.retiming import RunTrace
from covp.exploration.retiming.core_times import shape_of
from covp.exploration.retiming.recording import record_with_result
from covp.exploration.retiming.run_trace import time_parameters
from covp.exploration.sweep.content import data_content, model_content
from covp.exploration.sweep.estimates import area_um2, cycles_source
from covp.exploration.sweep.points import Point
from covp.graph.graph import Graph
from covp.graph.models import load_model

_CacheValues = tuple[tuple[str, Value], ...]
_KEPT = 64
"""Programs whose figures and traces a process keeps; a trace has about 100 kB."""


@dataclass(frozen=True, eq=False)
class RecordedDesign:
    """A design that ran.

    Attributes:
        figures: of its row.
        trace: of its run; None where it was not wanted, or its path depends on time.
    """

    figures: dict[str, Any]
    trace: RunTrace | None


def timing_only(point: Point) -> frozenset[str]:
    """Return the varied parameters of a point that change nothing but how long its program takes.

    `platform.core` is none of them: a program is compiled for its core.
    """
    return _timing_only(point.content, point.platform, point.accelerators) & point.values.keys()


@functools.lru_cache(maxsize=256)
def _timing_only(content: str, platform: str, accelerators: tuple[str, ...]) -> frozenset[str]:
    board, units = vary_design(platform, accelerators, {})
    return time_parameters(board).union(
        f"{unit.name}.{parameter.name}" for unit in units for parameter in unit.timing_parameters
    )


def build_and_run(
    point: Point, with_trace: bool = False, like: Sequence[Point] = ()
) -> RecordedDesign:
    """Return a design, built and run.

    Args:
        point: with all of its values.
        with_trace: whether the trace is wanted.
        like: points that are retimed from the trace: it knows the shapes of their caches.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    return _kept(point, with_trace, _files(point), frozenset(map(_cache_values, like)))


def _cache_values(point: Point) -> _CacheValues:
    """Return the values of a point that are of its platform's caches."""
    names = {f"{PLATFORM}.{cache.name}" for cache in load_platform(point.platform).caches}
    return tuple(pair for pair in point.vary if pair[0].rpartition(".")[0] in names)


def _shapes(point: Point, values: Iterable[_CacheValues]) -> dict[str, list[dict[str, int]]]:
    """Return the shapes of caches by name, as `record` takes them; none that is not allowed."""
    found: dict[str, list[dict[str, int]]] = {}
    for each in values:
        try:
            caches = vary_design(point.platform, [], dict(each))[0].caches
        except CovpError:
            continue  # the row of such a point says why
        for cache in caches:
            if not cache.prefetch:
                found.setdefault(cache.name, []).append(shape_of(cache).values)
    return found


@functools.lru_cache(maxsize=_KEPT)
def _kept(
    point: Point, with_trace: bool, files: str, caches: frozenset[_CacheValues]
) -> RecordedDesign:
    made, sample = _build(point), _model(point.model, point.seed, files)[1]
    trace = None
    if with_trace:
        try:
            shapes = _shapes(point, caches)
            trace, result = record_with_result(made, sample, shapes)
        except CovpError:
            with_trace = False
        else:
            better = renew_build(result)
            if better is not None:
                trace, result = record_with_result(better, sample, shapes)
    if not with_trace:
        result = measure_inference(made, sample)[0]
    return RecordedDesign({**figures_of(result, point), **_accuracy(result.build, point)}, trace)


def _build(point: Point) -> Build:
    platform, units = vary_design(point.platform, point.accelerators, point.values)
    graph = _model(point.model, point.seed, _files(point))[0]
    base = load_platform(point.platform)
    # the program is that of the platform as its file is, whatever its memory's timing here
    chosen = base if base.core.key == platform.core.key else platform
    schedules = schedules_of(chosen, point.options)
    return build(graph, platform, units, point.options, schedules=schedules)


def _files(point: Point) -> str:
    """Return the key of the present content of the files of a model and its samples."""
    return content_key(model_content(point.model), data_content(point.data))


@functools.lru_cache(maxsize=4)
def _model(name: str, seed: int, files: str) -> tuple[Graph, Sample]:
    """Return a model with random inputs and the reference's outputs; cached for all its points."""
    graph = load_model(name)
    return graph, Sample.random(graph, seed)


def figures_of(result: Evaluation, point: Point) -> dict[str, Any]:
    """Return the figures of the row of a point that ran.

    Args:
        result: of the run.
        point: what ran.
    """
    profile, memory, energy = result.profile, result.memory, result.energy
    offloads = [entry.offload for entry in profile.layers if entry.offload is not None]
    return {
        "how": "run",
        "instructions": profile.instructions,
        "cycles": profile.cycles,
        "seconds": profile.seconds,
        "waiting": sum(offload.waiting for offload in offloads),
        "energy_j": energy.joules if isinstance(energy, Energy) else None,
        "area_um2": area_um2(point),
        "flash_bytes": memory.flash_bytes,
        "ram_bytes": memory.ram_bytes,
        "arena_bytes": memory.arena_bytes,
        "mac_coverage": result.mac_coverage,
        "matches_reference": result.matches_reference,
        "model_source": result.source,
        **cycles_source(point),
    }


def _accuracy(made: Build, point: Point) -> dict[str, float | None]:
    """Return the accuracy over the samples of a point; empty without samples."""
    if point.data is None:
        return {}
    if point.data.on == "reference":
        scores = _by_reference(made, point.data, _files(point))
    else:
        scores = accuracy_of(made, point.data).scores
    error = scores.mean_error
    return {"accuracy": scores.accuracy, "mean_error": error.absolute if error else None}


_scores: dict[str, Scores] = {}
"""Scores of the reference, by the content of model and data."""


def _by_reference(made: Build, data: Data, files: str) -> Scores:
    """Return the scores of the reference, computed once for all designs of a model."""
    if files not in _scores:
        _scores[files] = accuracy_of(made, data).scores
    return _scores[files]
