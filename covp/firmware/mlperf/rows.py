"""`MeasuredPoint`: what was found of a point, as an object and JSON, with `MlperfQuality`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from covp.evaluation.data.tasks import Metric, Task, area_under_curve, top_1
from covp.evaluation.further_documents import MlperfRow
from covp.firmware.mlperf.points import MlperfPoint, Performance


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
        performance: None where the model cannot run there.
        quality: None where no samples were given, or there are none for the model.
        reason: why what was wanted is missing, in one line; None where nothing is.
    """

    point: MlperfPoint
    performance: Performance | None
    quality: MlperfQuality | None
    reason: str | None

    @property
    def is_right(self) -> bool:
        """True if nothing that was requested is missing and the outputs are the reference's."""
        right = self.performance is not None and self.performance.matches_reference
        return right and self.reason is None

    @property
    def inferences_per_second(self) -> float | None:
        """One after the other, without the time between them."""
        latency = self.performance.latency_us if self.performance else None
        return 1e6 / latency if latency else None

    def record(self) -> MlperfRow:
        """Return the row of the JSON document ``covp.mlperf/1``."""
        point, quality, cost = self.point, self.quality, self.performance
        costs = {} if cost is None else {f.name: getattr(cost, f.name) for f in fields(cost)}
        costs["warnings"] = list(costs.get("warnings", ()))
        return MlperfRow(
            model=point.graph.name,
            model_source=point.graph.source,
            benchmark=point.task.name if point.task else None,
            platform=point.platform.name,
            accelerators=list(point.accelerators),
            reason=self.reason,
            per="frame" if point.graph.streaming else "inference",
            **costs,
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
