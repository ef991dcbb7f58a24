"""`run_parts`: samples on what computes them, in this process and in others."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from covp.base.closing import Closing
from covp.building.builder import Build
from covp.evaluation.data.answers import Answers, Judge
from covp.evaluation.data.beside import Litert, OtherModel
from covp.evaluation.data.inference import Inference, OnDevice, OnReference
from covp.evaluation.data.quality import Place
from covp.evaluation.data.samples import SampleSource
from covp.evaluation.data.stored import real
from covp.graph.graph import Graph
from covp.runtime.jobs import open_jobs

Array = NDArray[Any]
Part = tuple[int, int]
"""The number of the first sample, and of the one after the last."""

_ALONE = 1.5
"""Seconds of work below which other processes are not worth their start."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Model with the device and samples that it is run on. Pickles.

    Attributes:
        build: the model and what it was compiled for.
        on, device: "device" with its name, or "reference".
        samples: that are run.
        labels: of them.
        judge: how outputs are compared with the labels.
        other: a model beside it.
        litert: the file that LiteRT runs beside it.
    """

    build: Build
    on: Place
    device: str
    samples: SampleSource
    labels: Array | None
    judge: Judge
    other: Graph | None = None
    litert: Path | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """Results for some samples.

    Attributes:
        answers, other, litert: what outputs say; of those beside it None where there is none.
        cycles: see `Inferred`.
        other_bytes: inferences of which LiteRT's outputs are other bytes.
        beyond, elements: input values that the type cannot hold, of how many.
    """

    answers: Answers
    other: Answers | None
    litert: Answers | None
    cycles: Array | None
    other_bytes: int
    beyond: int
    elements: int


class SubjectBench(Closing):
    """Runner of a subject. Pickles, without what it has opened.

    Args:
        subject: its device is opened for the first samples and stays open until `close`.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __reduce__(self) -> tuple[Any, ...]:
        return SubjectBench, (self._subject,)

    @cached_property
    def _other(self) -> OtherModel | None:
        return None if self._subject.other is None else OtherModel(self._subject.other)

    @cached_property
    def _litert(self) -> Litert | None:
        return None if self._subject.litert is None else Litert(self._subject.litert)

    @cached_property
    def _inference(self) -> Inference:
        build = self._subject.build
        if self._subject.on == "reference":
            return OnReference(build.graph)
        return OnDevice(build, self._subject.device)

    def __call__(self, part: Part) -> Found:
        """Run some of the samples.

        Raises:
            CovpError: samples cannot be read, or the program faulted.
        """
        subject, graph = self._subject, self._subject.build.graph
        start, stop = part
        inputs = subject.samples.batch(graph, start, stop)
        rows, output = len(inputs[0].stored), graph.outputs[0]
        windows = subject.samples.windows(start, stop)
        reals = inputs[0].reals[:, -1].reshape(rows, -1)
        labels = None if subject.labels is None else subject.labels[start:stop]
        inferred = self._inference.run([each.stored for each in inputs])

        def answers(outputs: Array) -> Answers:
            found = subject.judge.answers(outputs.reshape(rows, -1), labels, reals)
            return found.average(windows)

        other = None if self._other is None else answers(self._other.outputs(inputs))
        litert, other_bytes = None, 0
        if self._litert is not None:
            theirs = self._litert.outputs(inputs)
            litert = answers(real(theirs[0], output))
            other_bytes = _count_differences(theirs, inferred.outputs)
        return Found(
            answers(real(inferred.outputs[0], output)),
            other,
            litert,
            inferred.cycles,
            other_bytes,
            sum(each.beyond for each in inputs),
            sum(each.stored.size for each in inputs),
        )

    def close(self) -> None:
        """Close the device."""
        if "_inference" in vars(self):
            self._inference.close()


def _count_differences(a: Sequence[Array], b: Sequence[Array]) -> int:
    """Return how many inferences have an output whose bytes differ."""
    return sum(
        any(x[n].tobytes() != y[n].tobytes() for x, y in zip(a, b, strict=True))
        for n in range(len(a[0]))
    )


def run_parts(
    subject: Subject, parts: Sequence[Part], jobs: int
) -> Generator[tuple[int, Found], None, None]:
    """Yield each part with its number, in any order; none depends on another or on ``jobs``.

    Other processes are started when the work takes more than a second or two.

    Args:
        subject: what is run.
        parts: of its samples.
        jobs: processes at most.

    Raises:
        CovpError: as a `SubjectBench`.
    """
    alone = jobs < 2 or ":" in subject.device
    start, done = time.perf_counter(), 0
    with SubjectBench(subject) as bench:
        for part in parts:
            passed = time.perf_counter() - start
            left = len(parts) - done
            if not alone and done and passed * left / done > _ALONE and left > 1:
                break
            yield done, bench(part)
            done += 1
    if done < len(parts):
        with open_jobs(SubjectBench(subject), min(jobs, len(parts) - done)) as others:
            for each in others.call(parts[done:]):
                yield done + each.number, each.result
