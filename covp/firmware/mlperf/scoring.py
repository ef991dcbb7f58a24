"""`Scorer`: what a model says of the files of a dataset, on the emulated core or the reference."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from covp.base.closing import Closing
from covp.evaluation import Build
from covp.evaluation.data.inference import Inference, OnDevice, OnReference
from covp.evaluation.data.runner_dataset import Stimulus, demand_finite
from covp.evaluation.data.tasks import Task
from covp.graph.graph import Graph

_LONGEST = 200
"""Inferences of a chunk, where a file has no more: some seconds."""

Subject = Build | Graph
"""Computing subject: a build on an emulated core, or a graph by the reference."""


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
class ChunkAnswers:
    """Answers for a chunk.

    Attributes:
        values: of each file: of its only sample, or the mean over its windows.
        seconds: host time.
    """

    values: tuple[float, ...]
    seconds: float


class Scorer(Closing):
    """Runs models on the samples of chunks; the build that ran last stays loaded for the next."""

    def __init__(self) -> None:
        self._latest: tuple[int, OnDevice] | None = None

    def __call__(self, chunk: Chunk) -> ChunkAnswers:
        """Run the model on each sample of each file.

        Raises:
            CovpError: a file cannot be read, or the program faulted.
        """
        start = time.perf_counter()
        task, (source,), (result,) = chunk.task, chunk.graph.inputs, chunk.graph.outputs
        samples = [list(file.samples()) for file in chunk.files]
        if task.kind == "spectrum":
            for file, windows in zip(chunk.files, samples, strict=True):
                for sample in windows:
                    demand_finite(sample, file)
        inputs = np.stack([task.input(sample, source) for sample in chain.from_iterable(samples)])
        (outputs,) = self._inference(chunk).run([inputs[:, None]]).outputs
        following = iter(outputs)
        found = [
            [task.answer(sample, next(following), result) for sample in windows]
            for windows in samples
        ]
        return ChunkAnswers(
            tuple(float(np.mean(each)) for each in found), time.perf_counter() - start
        )

    def _inference(self, chunk: Chunk) -> Inference:
        """Return the inference for a chunk's subject."""
        if isinstance(chunk.subject, Graph):
            return OnReference(chunk.subject)
        if self._latest is None or self._latest[0] != chunk.number:
            self.close()
            self._latest = chunk.number, OnDevice(chunk.subject)
        return self._latest[1]

    def close(self) -> None:
        """Close the device."""
        if self._latest is not None:
            self._latest[1].close()
            self._latest = None


def chunks(
    number: int, subject: Subject, task: Task, files: Sequence[Stimulus], jobs: int
) -> list[Chunk]:
    """Return a dataset in parts: some for each process, none of them long.

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
