"""`accuracy_of`: how right a build is over samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.arguments import demand_count
from covp.building.builder import Build
from covp.errors import UsageError
from covp.evaluation.data.answers import Answers, Judge
from covp.evaluation.data.bench import Found, Subject, run_parts
from covp.evaluation.data.beside import demand_same_task, litert_version, why_no_litert
from covp.evaluation.data.labels import read_labels
from covp.evaluation.data.quality import Beside, Place, Quality, Scores, Spread
from covp.evaluation.data.samples import SampleSource
from covp.graph.graph import Graph
from covp.graph.models import as_graph, find_model

Array = NDArray[Any]
Advance = Callable[[str, int], None]

_PART = 32
"""Inferences that are run together; the same for any number of processes."""


@dataclass(frozen=True)
class Data:
    """Samples with what is right for them.

    Attributes:
        samples: a .npy file (samples, ...), a .npz file with an array for each input, or a folder
            with a file for each sample, or in the layout of MLPerf Tiny's runner.
        labels: see `read_labels`; None: those of the runner's layout, or none.
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
    jobs: int = 1,
    float_model: Graph | str | Path | None = None,
    litert: str | Path | None = None,
    advance: Advance = lambda text, steps: None,
) -> Quality:
    """Run a build on samples, and compare its outputs with their labels.

    Args:
        build: the model and what it was compiled for.
        data: the samples.
        device: as for `Session`.
        jobs: processes at most; the figures are the same for any number.
        float_model: the model before its quantization, or another one of the same task, to be
            computed beside it by the reference: a graph, a zoo name or a path.
        litert: the build's model file or zoo name, to be run on LiteRT beside it where it is a
            TFLite file.
        advance: called after each part with a text and the number of parts.

    Raises:
        UsageError: samples or labels do not fit the model; nothing has run then.
        CovpError: with one line, whatever goes wrong.
    """
    start = time.perf_counter()
    demand_count("jobs", jobs, 1)
    subject = Subject(build, data.on, device, *_given(data, build.graph))
    if float_model is not None:
        other = as_graph(float_model)
        demand_same_task(build.graph, other)
        subject = replace(subject, other=other)
    reason, path = None, None if litert is None else find_model(litert).path
    if path is not None and path.suffix.lower() == ".tflite":
        reason = why_no_litert(build.graph, path)
        subject = subject if reason else replace(subject, litert=path)
    parts = _parts(subject.samples)
    found: dict[int, Found] = {}
    with closing(run_parts(subject, parts, jobs)) as results:
        for index, part in results:
            found[index] = part
            advance(f"{build.model}: {len(found)} of {len(parts)} parts", len(parts))
    quality = _quality(subject, [found[index] for index in range(len(parts))])
    quality = replace(quality, litert=quality.litert or reason)
    return replace(quality, seconds=time.perf_counter() - start)


def first_inputs(data: Data, graph: Graph) -> list[Array]:
    """Return the inputs of the first inference.

    Args:
        data: the samples.
        graph: the model.

    Raises:
        UsageError: samples or labels do not fit the model.
    """
    return [each.stored[0, 0] for each in _given(data, graph)[0].batch(graph, 0, 1)]


def demand_labels(data: Data, graph: Graph) -> None:
    """Check that there are labels, and that samples and labels fit the model.

    Args:
        data: the samples; of their values only those of the first one are looked at.
        graph: the model.

    Raises:
        UsageError: they do not.
    """
    samples, labels, _ = _given(data, graph)
    if labels is None:
        raise UsageError(f"{data.samples}: has no labels of its own, and none are given")
    samples.batch(graph, 0, 1)


def _given(data: Data, graph: Graph) -> tuple[SampleSource, Array | None, Judge]:
    """Find everything that can be wrong with the data, but for the samples' values."""
    if data.on not in ("device", "reference"):
        raise UsageError(f"data on {data.on!r:.40}: must be device or reference")
    samples = SampleSource.find(data.samples, graph)
    labels = samples.labels if data.labels is None else read_labels(data.labels, samples)
    if data.limit is not None:
        demand_count("the limit of samples", data.limit, 1)
        samples = samples.first(data.limit)
        labels = None if labels is None else labels[: data.limit]
    return samples, labels, Judge.of(graph, labels, str(data.labels or data.samples))


def _parts(samples: SampleSource) -> list[tuple[int, int]]:
    """Return parts of the samples that are run together."""
    longest = max(samples.windows(0, samples.count))
    size = max(1, _PART // longest)
    return [(n, min(n + size, samples.count)) for n in range(0, samples.count, size)]


def _quality(subject: Subject, found: Sequence[Found]) -> Quality:
    """Return the quality from the parts in their order."""
    answers = Answers.together([part.answers for part in found])
    beyond, elements = (sum(getattr(p, name) for p in found) for name in ("beyond", "elements"))
    is_integer = all(tensor.dtype.kind in "iu" for tensor in subject.build.graph.outputs)
    other = litert = None
    if subject.other is not None:
        own = Answers.together([part.other for part in found if part.other])
        name = f"{subject.other.name}, by the reference"
        other = Beside(name, _scores(subject, own), _other_classes(answers, own))
    if subject.litert is not None:
        own = Answers.together([part.litert for part in found if part.litert])
        differing = sum(part.other_bytes for part in found) if is_integer else None
        classes = _other_classes(answers, own)
        litert = Beside(litert_version(), _scores(subject, own), classes, differing)
    return Quality(
        samples=subject.samples.count,
        steps=subject.samples.steps,
        on=subject.on,
        scores=_scores(subject, answers),
        saturated=beyond / elements,
        cycles=_cycles(found),
        float_model=other,
        litert=litert,
    )


def _scores(subject: Subject, answers: Answers) -> Scores:
    return subject.judge.scores(answers, subject.labels)


def _other_classes(a: Answers, b: Answers) -> int | None:
    """Return how many samples have different classes; None: there are no classes."""
    if a.classes is None or b.classes is None:
        return None
    return int(np.sum(a.classes != b.classes))


def _cycles(found: Sequence[Found]) -> Spread | None:
    counts = [part.cycles for part in found if part.cycles is not None]
    if len(counts) < len(found):
        return None
    every = np.concatenate(counts)
    return Spread(int(every.min()), float(every.mean()), int(every.max()))
