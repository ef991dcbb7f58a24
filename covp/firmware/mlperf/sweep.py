"""`sweep`: models x platforms x accelerators in the manner of MLPerf Tiny, without its runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from covp.accelerator.registry import find_backends
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.chip.platform_file import Platform, load_platform
from covp.errors import CovpError, ModelError, UsageError
from covp.evaluation import Evaluation
from covp.evaluation.data.runner_dataset import Dataset, find_folder, read_dataset
from covp.evaluation.data.tasks import Task, find_task
from covp.firmware.mlperf.points import (
    MeasuredPoint,
    MeasureJob,
    MlperfPoint,
    MlperfQuality,
    measure,
    score,
)
from covp.firmware.mlperf.scoring import Chunk, ChunkAnswers, Scorer, Subject, chunks
from covp.graph.graph import Graph
from covp.graph.models import as_graph
from covp.runtime.jobs import open_jobs


@dataclass(frozen=True, eq=False)
class Entrant:
    """A model, with the samples for it or why there are none.

    Attributes:
        graph: the model; of a task on a stream its streaming form.
        task: that it is for, if any.
        dataset: its samples; None without a folder, a task, or samples that can be read.
        problem: why it has no samples, in one line, where it should have some.
    """

    graph: Graph
    task: Task | None
    dataset: Dataset | None = None
    problem: str | None = None

    @staticmethod
    def of(model: Graph | str | Path, data: Path | None) -> Entrant:
        """Read a model and its labels.

        Args:
            model: a graph, a zoo name or the path of a model file.
            data: see `find_folder`; None: no samples are wanted.

        Raises:
            CovpError: the model cannot be read.
        """
        graph = as_graph(model)
        task = find_task(graph)
        if task is not None and task.kind == "stream":
            return Entrant(_to_stream(graph), task)
        if task is None or data is None:
            return Entrant(graph, task)
        try:
            task.demand(graph)
            return Entrant(graph, task, read_dataset(find_folder(data, task), task))
        except CovpError as error:
            return Entrant(graph, task, problem=str(error))

    def first_input(self) -> NDArray[Any] | None:
        """Return the input of the first sample; None without. Raises UsageError: unreadable."""
        if self.dataset is None or self.task is None:
            return None
        sample = next(self.dataset.files[0].samples())
        return self.task.input(sample, self.graph.inputs[0])


def _to_stream(graph: Graph) -> Graph:
    """Return the network on a stream; as it is where it cannot run on one."""
    try:
        return as_graph(graph, BuildOptions(streaming=1))
    except ModelError:
        return graph


def demand_samples(data: Path, entrants: Sequence[Entrant]) -> None:
    """Raise UsageError if no model has samples."""
    if any(entrant.dataset for entrant in entrants):
        return
    for entrant in entrants:
        if entrant.problem is not None:
            raise UsageError(entrant.problem)
    names = ", ".join(entrant.graph.name for entrant in entrants)
    raise UsageError(f"{data}: no accuracy over samples is defined for {names}; omit the folder")


LABEL = "MLPerf-Tiny-style, emulated, not a submission"
"""Label that must accompany all figures."""

Advance = Callable[[str, int], None]


def sweep(
    models: Sequence[Graph | str | Path],
    platforms: Sequence[Platform | str | Path],
    setups: Sequence[Sequence[str]] = ((),),
    *,
    data: Path | None = None,
    reference: bool = False,
    jobs: int = 1,
    options: BuildOptions = DEFAULT_BUILD,
    seed: int = 0,
    advance: Advance = lambda text, steps: None,
) -> list[MeasuredPoint]:
    """Measure each model on each platform with each set of accelerators.

    A model that is for a stream, the wake word, is measured by new rows of it.

    Args:
        models: graphs, zoo names or paths of model files.
        platforms: platforms, names or the paths of YAML files.
        setups: accelerators of each set-up; an empty one is the core alone.
        data: samples to find the accuracy with: a folder with ``y_labels.csv``, or one with
            folders such as ``ic01``.
        reference: compute the accuracy with the reference instead of the emulated core; both have
            the same bits.
        jobs: processes.
        options: of the compilation.
        seed: of the inputs where there are no samples.
        advance: called after each step with a text and the number of steps that are known so far.

    Returns:
        A row per point, by model, platform and set-up. One that cannot be measured, or whose
        accuracy cannot, says why.

    Raises:
        CovpError: a model, platform or accelerator is not known, or no model has samples in
            ``data``; nothing has run then.
    """
    boards = [load_platform(platform) for platform in platforms]
    for setup in setups:
        find_backends(setup)  # wrong names are found before anything runs
    entrants = [Entrant.of(model, data) for model in models]
    if data is not None:
        demand_samples(data, entrants)
    entries = [
        _Entry(number, entrant, MlperfPoint(entrant.graph, board, tuple(setup), entrant.task))
        for (number, entrant), board, setup in product(enumerate(entrants), boards, setups)
    ]
    steps = _Steps(advance, len(entries))
    asked = [MeasureJob(each.point, options, each.entrant.first_input(), seed) for each in entries]
    costs = _measure(asked, jobs, steps)
    subjects = _subjects(entries, costs, reference)
    found = _score(subjects, jobs, steps)
    rows = enumerate(zip(entries, costs, strict=True))
    return [
        _row(entry, cost, found.get(entry.number if reference else index))
        for index, (entry, cost) in rows
    ]


@dataclass(frozen=True, eq=False)
class _Entry:
    """A point, with the model it is of."""

    number: int
    entrant: Entrant
    point: MlperfPoint


@dataclass
class _Steps:
    """Steps of the sweep, for a progress bar."""

    advance: Advance
    total: int

    def done(self, text: str) -> None:
        self.advance(text, self.total)


def _measure(asked: Sequence[MeasureJob], jobs: int, steps: _Steps) -> list[Evaluation | CovpError]:
    """Return the measurement of each point."""
    found: dict[int, Evaluation | CovpError] = {}
    with open_jobs(measure, jobs) as workers:
        for done in workers.call(asked):
            found[done.number] = done.error or done.result
            steps.done(str(asked[done.number].point))
    return [found[index] for index in range(len(asked))]


def _subjects(
    entries: Sequence[_Entry], costs: Sequence[Evaluation | CovpError], reference: bool
) -> dict[int, tuple[Entrant, Subject]]:
    """Return what computes accuracies: each measured point, or each of their models."""
    found: dict[int, tuple[Entrant, Subject]] = {}
    for index, (entry, cost) in enumerate(zip(entries, costs, strict=True)):
        if isinstance(cost, CovpError) or entry.entrant.dataset is None:
            continue
        if reference:
            found[entry.number] = entry.entrant, entry.point.graph
        else:
            found[index] = entry.entrant, cost.build
    return found


def _score(
    subjects: dict[int, tuple[Entrant, Subject]], jobs: int, steps: _Steps
) -> dict[int, MlperfQuality | CovpError]:
    """Return the quality of each subject, by its number."""
    parts = list(chain.from_iterable(_parts(n, *pair, jobs) for n, pair in subjects.items()))
    steps.total += len(parts)
    results: dict[int, ChunkAnswers | CovpError] = {}
    with open_jobs(Scorer(), jobs) as workers:
        for done in workers.call(parts):
            results[done.number] = done.error or done.result
            steps.done(f"accuracy of {parts[done.number].graph.name}")
    found: dict[int, list[ChunkAnswers | CovpError]] = {number: [] for number in subjects}
    for index, part in enumerate(parts):
        found[part.number].append(results[index])
    return {number: _quality(*subjects[number], given) for number, given in found.items()}


def _parts(number: int, entrant: Entrant, subject: Subject, jobs: int) -> list[Chunk]:
    assert entrant.task is not None and entrant.dataset is not None
    return chunks(number, subject, entrant.task, entrant.dataset.files, jobs)


def _quality(
    entrant: Entrant, subject: Subject, given: Sequence[ChunkAnswers | CovpError]
) -> MlperfQuality | CovpError:
    """Return the quality from the answers of all parts in order, or the first failure."""
    assert entrant.task is not None and entrant.dataset is not None
    values: list[float] = []
    for part in given:
        if isinstance(part, CovpError):
            return part
        values += part.values
    files = entrant.dataset.files
    return MlperfQuality(
        metric=entrant.task.metric,
        value=score(entrant.task, values, entrant.dataset.labels),
        target=entrant.task.target,
        samples=len(files),
        inferences=sum(file.inferences for file in files),
        computed_by="reference" if isinstance(subject, Graph) else "device",
        seconds=sum(part.seconds for part in given if isinstance(part, ChunkAnswers)),
    )


def _row(
    entry: _Entry, cost: Evaluation | CovpError, quality: MlperfQuality | CovpError | None
) -> MeasuredPoint:
    if isinstance(cost, CovpError):
        return MeasuredPoint(entry.point, None, None, _line(cost))
    if isinstance(quality, CovpError):
        return MeasuredPoint(entry.point, cost, None, _line(quality))
    return MeasuredPoint(entry.point, cost, quality, entry.entrant.problem)


def _line(error: CovpError) -> str:
    return " ".join(str(error).split())
