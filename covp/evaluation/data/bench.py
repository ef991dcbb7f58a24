"""`run_parts`: samples on what computes them, in this process and in others."""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from covp.base.closing import Closing
from covp.evaluation.builder import Build
from covp.evaluation.data.answers import Answers, Judge
from covp.evaluation.data.beside import Litert, OtherModel
from covp.evaluation.data.inference import Inference, OnDevice, OnReference
from covp.evaluation.data.quality import Place
from covp.evaluation.data.samples import Samples
from covp.evaluation.data.stored import real
from covp.evaluation.workers import Failed, Workers
from covp.graph.graph import Graph

Array = NDArray[Any]
Part = tuple[int, int]
"""The number of the first sample, and of the one after the last."""

_ALONE = 0.7
"""Seconds of work below which other processes are not worth their start."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What is run on what. Pickles.

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
    samples: Samples
    labels: Array | None
    judge: Judge
    other: Graph | None = None
    litert: Path | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """Of some samples.

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


class Bench(Closing):
    """A subject that is ready to run.

    Args:
        subject: its device stays open until `close`.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject, build = subject, subject.build
        self._other = None if subject.other is None else OtherModel(subject.other)
        self._litert = None if subject.litert is None else Litert(subject.litert)
        self._inference: Inference
        if subject.on == "reference":
            self._inference = OnReference(build.graph)
        else:
            self._inference = OnDevice(build, subject.device)

    def run(self, part: Part) -> Found:
        """Some of the samples.

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
            return found.averaged(windows)

        other = None if self._other is None else answers(self._other.outputs(inputs))
        litert, other_bytes = None, 0
        if self._litert is not None:
            theirs = self._litert.outputs(inputs)
            litert = answers(real(theirs[0], output))
            other_bytes = _differing(theirs, inferred.outputs)
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
        """Let the device go."""
        self._inference.close()


def _differing(a: Sequence[Array], b: Sequence[Array]) -> int:
    """Inferences of which some output is not the same bytes."""
    return sum(
        any(x[n].tobytes() != y[n].tobytes() for x, y in zip(a, b, strict=True))
        for n in range(len(a[0]))
    )


def run_parts(
    subject: Subject, parts: Sequence[Part], jobs: int
) -> Generator[tuple[int, Found], None, None]:
    """Each part with its number, in any order; none depends on another or on the number of jobs.

    Other processes are started when the work is more than some tenths of a second.

    Args:
        subject: what is run.
        parts: of its samples.
        jobs: processes at most.

    Raises:
        CovpError: as `Bench.run`.
    """
    alone = jobs < 2 or multiprocessing.current_process().daemon or ":" in subject.device
    start, done = time.perf_counter(), 0
    with Bench(subject) as bench:
        for part in parts:
            passed = time.perf_counter() - start
            left = len(parts) - done
            if not alone and done and passed * left / done > _ALONE and left > 1:
                break
            yield done, bench.run(part)
            done += 1
    if done < len(parts):
        yield from _shared(subject, parts, done, jobs)


def _shared(
    subject: Subject, parts: Sequence[Part], first: int, jobs: int
) -> Generator[tuple[int, Found], None, None]:
    """The parts from the first on, in other processes."""
    content = pickle.dumps(subject)
    key = hashlib.sha256(content).hexdigest()
    wanted = [_Task(key, content, part) for part in parts[first:]]
    with Workers(min(jobs, len(wanted))) as workers:
        for index, found in workers.call(_run_task, wanted):
            if isinstance(found, Failed):
                with Bench(subject) as bench:  # raises here what it raised there
                    found = bench.run(parts[first + index])
            yield first + index, found


@dataclass(frozen=True, eq=False)
class _Task:
    """A part for another process.

    Attributes:
        key: of the content.
        content: of the subject, pickled.
        part: of its samples.
    """

    key: str
    content: bytes
    part: Part


_latest: tuple[str, Bench] | None = None
"""What this process ran last, by its key; it stays open for the next part."""


def _run_task(task: _Task) -> Found:
    global _latest
    if _latest is None or _latest[0] != task.key:
        if _latest is not None:
            _latest[1].close()
            _latest = None
        _latest = task.key, Bench(pickle.loads(task.content))
    return _latest[1].run(task.part)
