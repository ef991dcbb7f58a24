"""`accuracy_of`: how right a build is over samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.arguments import demand_count
from covp.errors import UsageError
from covp.evaluation.builder import Build
from covp.evaluation.data.answers import Answers, Judge
from covp.evaluation.data.inference import Inference, OnDevice, OnReference
from covp.evaluation.data.labels import read_labels
from covp.evaluation.data.quality import Place, Quality, Spread
from covp.evaluation.data.samples import Samples
from covp.evaluation.data.stored import real
from covp.graph.graph import Graph

Array = NDArray[Any]
Advance = Callable[[str, int], None]

_PART = 32
"""Samples that are run together; the same for any number of processes."""


@dataclass(frozen=True)
class Data:
    """Samples with what is right for them.

    Attributes:
        samples: a .npy file (samples, ...), a .npz file with an array for each input, or a folder
            with a file for each sample.
        labels: see `read_labels`; None: there are none.
        on: "device", or "reference": the bit-exact reference in numpy, which is faster and knows
            nothing of the accelerators.
        limit: the first samples only; None: all.
    """

    samples: Path
    labels: Path | None = None
    on: Place = "device"
    limit: int | None = None


def accuracy_of(
    build: Build,
    data: Data,
    *,
    device: str = "virtual",
    advance: Advance = lambda text, steps: None,
) -> Quality:
    """Run a build on samples, and compare its outputs with their labels.

    Args:
        build: the model and what it was compiled for.
        data: the samples.
        device: as for `Session`.
        advance: called after each part with a text and the number of parts.

    Raises:
        UsageError: samples or labels do not fit the model; nothing has run then.
        CovpError: with one line, whatever goes wrong.
    """
    start = time.perf_counter()
    subject = Subject(build, data, device, *_given(data, build.graph))
    parts = [
        (first, min(first + _PART, subject.samples.count))
        for first in range(0, subject.samples.count, _PART)
    ]
    found = []
    for part in _run(subject, parts):
        found.append(part)
        advance(f"{build.model} {data.on}", len(parts))
    return replace(_quality(subject, found), seconds=time.perf_counter() - start)


def first_inputs(data: Data, graph: Graph) -> list[Array]:
    """The inputs of the first inference.

    Raises:
        UsageError: samples or labels do not fit the model.
    """
    return [each.stored[0, 0] for each in _given(data, graph)[0].batch(graph, 0, 1)]


@dataclass(frozen=True, eq=False)
class Subject:
    """What is run on what. Pickles.

    Attributes:
        build, data, device: as for `accuracy_of`.
        samples: those of the data, as many as are wanted.
        labels: of them.
        judge: how outputs are compared with the labels.
    """

    build: Build
    data: Data
    device: str
    samples: Samples
    labels: Array | None
    judge: Judge


def _given(data: Data, graph: Graph) -> tuple[Samples, Array | None, Judge]:
    """Everything that can be wrong with the data is found here, but for the samples' values."""
    if data.on not in ("device", "reference"):
        raise UsageError(f"data on {data.on!r:.40}: it is device or reference")
    samples = Samples.find(data.samples, graph)
    labels = None if data.labels is None else read_labels(data.labels, samples)
    if data.limit is not None:
        demand_count("the limit of samples", data.limit, 1)
        samples = samples.first(data.limit)
        labels = None if labels is None else labels[: data.limit]
    return samples, labels, Judge.of(graph, labels, str(data.labels))


@dataclass(frozen=True, eq=False)
class Found:
    """Of some samples.

    Attributes:
        answers: what the outputs say.
        cycles: see `Inferred`.
        beyond, elements: input values that the type cannot hold, of how many.
    """

    answers: Answers
    cycles: Array | None
    beyond: int
    elements: int


class Bench:
    """A subject that is ready to run.

    Args:
        subject: its device stays open until `close`.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        build = subject.build
        self._inference: Inference
        if subject.data.on == "reference":
            self._inference = OnReference(build.graph)
        else:
            self._inference = OnDevice(build, subject.device)

    def run(self, start: int, stop: int) -> Found:
        """Some of the samples, by their numbers."""
        subject, graph = self._subject, self._subject.build.graph
        inputs = subject.samples.batch(graph, start, stop)
        inferred = self._inference.run([each.stored for each in inputs])
        labels = None if subject.labels is None else subject.labels[start:stop]
        rows = stop - start
        output, values = graph.outputs[0], inferred.outputs[0].reshape(rows, -1)
        reals = inputs[0].reals[:, -1].reshape(rows, -1)
        return Found(
            subject.judge.answers(real(values, output), labels, reals),
            inferred.cycles,
            sum(each.beyond for each in inputs),
            sum(each.stored.size for each in inputs),
        )

    def close(self) -> None:
        """Let the device go."""
        self._inference.close()


def _run(subject: Subject, parts: Sequence[tuple[int, int]]) -> Iterator[Found]:
    bench = Bench(subject)
    try:
        for start, stop in parts:
            yield bench.run(start, stop)
    finally:
        bench.close()


def _quality(subject: Subject, found: Sequence[Found]) -> Quality:
    """From the parts in their order."""
    answers = Answers.together([part.answers for part in found])
    counts = [part.cycles for part in found if part.cycles is not None]
    cycles = None
    if len(counts) == len(found):
        every = np.concatenate(counts)
        cycles = Spread(int(every.min()), float(every.mean()), int(every.max()))
    beyond, elements = (sum(getattr(p, name) for p in found) for name in ("beyond", "elements"))
    return Quality(
        samples=subject.samples.count,
        steps=subject.samples.steps,
        on=subject.data.on,
        scores=subject.judge.scores(answers, subject.labels),
        saturated=beyond / elements,
        cycles=cycles,
    )
