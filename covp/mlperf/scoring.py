"""`answers`: what a model says of the files of a dataset, on the emulated core or the reference."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.evaluation import Build
from covp.graph.graph import Graph
from covp.graph.reference import run_reference
from covp.mlperf.dataset import Stimulus, demand_finite
from covp.mlperf.tasks import Task
from covp.runtime.session import Session

_LONGEST = 200
"""Inferences of a chunk, where a file has no more: some seconds."""

Infer = Callable[[NDArray[Any]], NDArray[Any]]
Subject = Build | Graph
"""What computes: a build on an emulated core, or a graph by the reference."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some files of a dataset for a model. Chunks pickle.

    Attributes:
        number: of the subject; a process keeps its device for the next chunk of the same number.
        subject: what computes.
        task: what the files are for.
        files: of the dataset.
    """

    number: int
    subject: Subject
    task: Task
    files: tuple[Stimulus, ...]

    @property
    def graph(self) -> Graph:
        """The model."""
        return self.subject if isinstance(self.subject, Graph) else self.subject.graph


@dataclass(frozen=True)
class Answers:
    """Of a chunk.

    Attributes:
        values: of each file, see `file_answer`.
        seconds: host time.
    """

    values: tuple[float, ...]
    seconds: float


def answers(chunk: Chunk) -> Answers:
    """Run the model on each sample of each file.

    Raises:
        CovpError: a file cannot be read, or the program faulted.
    """
    start = time.perf_counter()
    infer = _opened(chunk.number, chunk.subject)
    values = tuple(file_answer(file, chunk.task, chunk.graph, infer) for file in chunk.files)
    return Answers(values, time.perf_counter() - start)


def file_answer(file: Stimulus, task: Task, graph: Graph, infer: Infer) -> float:
    """The answer of its only sample, or the mean over its windows.

    Args:
        file: of the dataset.
        task: what it is for.
        graph: the model, with one input and one output.
        infer: computes the output of an input.
    """
    (source,), (result,) = graph.inputs, graph.outputs
    found = []
    for sample in file.samples():
        if task.kind == "spectrum":
            demand_finite(sample, file)
        found.append(task.answer(sample, infer(task.input(sample, source)), result))
    return float(np.mean(found))


@dataclass(frozen=True)
class _Loaded:
    """A build on a device of its own."""

    number: int
    session: Session
    infer: Infer


_latest: _Loaded | None = None
"""What this process ran last."""


def _opened(number: int, subject: Subject) -> Infer:
    """What computes an inference of a subject; a build stays loaded until another one comes."""
    global _latest
    if isinstance(subject, Graph):
        return lambda value: run_reference(subject, [value])[0]
    if _latest is None or _latest.number != number:
        if _latest is not None:
            _latest.session.close()
            _latest = None
        session = Session(subject.platform, toolchain=subject.toolchain)
        _latest = _Loaded(number, session, session.load(subject.program).run)
    return _latest.infer


def chunks(
    number: int, subject: Subject, task: Task, files: Sequence[Stimulus], jobs: int
) -> list[Chunk]:
    """A dataset in parts: some for each process, none of them long.

    Args:
        number, subject, task, files: see `Chunk`.
        jobs: processes.
    """
    longest = min(sum(file.inferences for file in files) // (4 * jobs), _LONGEST)
    parts: list[list[Stimulus]] = [[]]
    length = 0
    for file in files:
        if parts[-1] and length + file.inferences > longest:
            parts.append([])
            length = 0
        parts[-1].append(file)
        length += file.inferences
    return [Chunk(number, subject, task, tuple(part)) for part in parts]
