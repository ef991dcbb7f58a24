"""`Entrant`: a model of a sweep, with its benchmark and its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from covp.base.request import BuildOptions
from covp.errors import CovpError, ModelError, UsageError
from covp.evaluation.data.runner_dataset import Dataset, find_folder, read_dataset
from covp.evaluation.data.tasks import Task, find_task
from covp.graph.graph import Graph
from covp.graph.models import as_graph


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
