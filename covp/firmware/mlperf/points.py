"""`measure`: one model on one platform with one set of accelerators; `MeasuredPoint`: what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.base.request import BuildOptions, change_options
from covp.chip.platform_file import Platform
from covp.evaluation import Evaluation, Sample, build
from covp.evaluation.data.tasks import Metric, Task, area_under_curve, top_1
from covp.evaluation.further_documents import MlperfRow
from covp.evaluation.runner import measure_inference
from covp.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class MlperfPoint:
    """One of the points of a sweep. Points pickle.

    Attributes:
        graph: the model; as it is, or in its streaming form.
        platform: that runs it.
        accelerators: beside its core; empty: the core alone.
        task: the benchmark that the model is for, if any.
    """

    graph: Graph
    platform: Platform
    accelerators: tuple[str, ...]
    task: Task | None

    def __str__(self) -> str:
        units = "".join(f" + {name}" for name in self.accelerators)
        return f"{self.graph.name} on {self.platform.name}{units}"


@dataclass(frozen=True, eq=False)
class MeasureJob:
    """Arguments of `measure`. Jobs pickle.

    Attributes:
        point: that is measured.
        options: of the compilation.
        sample: the input; None: random.
        seed: of random inputs.
    """

    point: MlperfPoint
    options: BuildOptions
    sample: NDArray[np.int8] | None
    seed: int = 0


def measure(job: MeasureJob) -> Evaluation:
    """Compile a model, run one inference, and compare its outputs with the reference's.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    point = job.point
    options = change_options(job.options, {"allow_unused": True})
    made = build(point.graph, point.platform, point.accelerators, options)
    if job.sample is None:
        sample = Sample.random(point.graph, job.seed)
    else:
        sample = Sample.of(point.graph, [job.sample], "dataset")
    return measure_inference(made, sample)[0]


@dataclass(frozen=True)
class MlperfQuality:
    """The quality of the results over a dataset.

    Attributes:
        metric: what ``value`` is.
        value: 0 to 1.
        target: the closed division's least value; None: there is none.
        samples: files of the dataset.
        inferences: that were run for them.
        computed_by: "device", the emulated core, or "reference", which computes the same bits.
        seconds: host time, of all processes together.
    """

    metric: Metric
    value: float
    target: float | None
    samples: int
    inferences: int
    computed_by: Literal["device", "reference"]
    seconds: float

    @property
    def meets_target(self) -> bool | None:
        """True if the closed division would accept it; None: there is no target."""
        return None if self.target is None else self.value >= self.target


def score(task: Task, answers: Sequence[float], labels: Sequence[int]) -> float:
    """Return the task's metric.

    Args:
        task: what the files are for.
        answers: of each file: its class, or its distance, see `Task.answer`.
        labels: of each file.
    """
    if task.metric == "AUC":
        return area_under_curve(answers, labels)
    return top_1(answers, labels)


@dataclass(frozen=True, eq=False)
class MeasuredPoint:
    """A point and what was found of it.

    Attributes:
        point: model, platform, accelerators.
        result: of one inference; of a network on a stream, of one new row. None where the model
            cannot run there.
        quality: None where no samples were given, or there are none for the model.
        reason: why what was wanted is missing, in one line; None where nothing is.
    """

    point: MlperfPoint
    result: Evaluation | None
    quality: MlperfQuality | None
    reason: str | None

    @property
    def is_right(self) -> bool:
        """True if nothing that was requested is missing and the outputs are the reference's."""
        return self.result is not None and self.result.matches_reference and self.reason is None

    @property
    def inferences_per_second(self) -> float | None:
        """One after the other, without the time between them."""
        seconds = self.result.profile.seconds if self.result else None
        return 1 / seconds if seconds else None

    def record(self) -> MlperfRow:
        """Return the row of the JSON document ``covp.mlperf/1``."""
        point, quality = self.point, self.quality
        return MlperfRow(
            model=point.graph.name,
            model_source=point.graph.source,
            benchmark=point.task.name if point.task else None,
            platform=point.platform.name,
            accelerators=list(point.accelerators),
            reason=self.reason,
            per="frame" if point.graph.streaming else "inference",
            **({} if self.result is None else _figures(self.result)),
            inferences_per_second=self.inferences_per_second,
            accuracy=quality.value if quality else None,
            metric=quality.metric if quality else None,
            target=point.task.target if point.task else None,
            meets_target=quality.meets_target if quality else None,
            samples=quality.samples if quality else None,
            inferences=quality.inferences if quality else None,
            computed_by=quality.computed_by if quality else None,
            accuracy_seconds=quality.seconds if quality else None,
        )


def _figures(result: Evaluation) -> dict[str, Any]:
    """Return the keys of an `MlperfRow` that one inference gives."""
    run, energy = result.record(), result.energy
    same = ("cycles", "cycles_source", "instructions", "matches_reference", "toolchain", "warnings")
    memory = ("flash_bytes", "ram_bytes", "arena_bytes")
    return {
        "latency_us": None if run.seconds is None else run.seconds * 1e6,
        "energy_uj": None if run.energy_j is None else run.energy_j * 1e6,
        "energy_reason": energy if isinstance(energy, str) else None,
        "mac_coverage": result.mac_coverage,
        **{name: getattr(run, name) for name in same},
        **{name: getattr(run.memory, name) for name in memory},
    }
