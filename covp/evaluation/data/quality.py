"""`Quality`: how right a model is over samples, as an object and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from covp.base.document import Amount, Count, Ratio, Seconds, unit

Place = Literal["device", "reference"]


@dataclass(frozen=True)
class MeanError:
    """Mean differences between outputs and target values, over all elements and samples.

    Attributes:
        absolute: of the magnitudes.
        squared: of the squares.
    """

    absolute: float
    squared: float


@dataclass(frozen=True)
class Scores:
    """Figures of merit; those that the labels are not for are None.

    Attributes:
        top1, top5: the share of samples whose label is the first, or among the first five classes;
            top5 from ten classes on.
        auc: area under the ROC curve.
        mean_error: from target values.
    """

    top1: float | None = None
    top5: float | None = None
    auc: float | None = None
    mean_error: MeanError | None = None

    @property
    def accuracy(self) -> float | None:
        """The one figure from 0 to 1, more is better: top-1 or the area under the curve."""
        return self.auc if self.top1 is None else self.top1


@dataclass(frozen=True)
class Beside:
    """Another computation of the same samples.

    Attributes:
        what: that computed it, with its version.
        scores: of it.
        other_classes: samples of which it names another class; None: there are no classes.
        other_bytes: samples of which some byte of its outputs is another; None: its outputs are of
            another type.
    """

    what: str
    scores: Scores
    other_classes: int | None
    other_bytes: int | None = None


@dataclass(frozen=True)
class Spread:
    """Least, mean and greatest value of a figure over inferences."""

    min: int
    mean: float
    max: int


@dataclass(frozen=True)
class Quality:
    """Quality of a model over samples.

    Attributes:
        samples: that were run.
        steps: inferences of each, one after the other from the states after a reset.
        on: "device", or "reference", the bit-exact reference in numpy.
        scores: of the outputs, dequantized.
        saturated: the share of the inputs' floats that are beyond what the input's type can hold.
        cycles: of the inferences; None without a device that counts them.
        float_model: the float model on the same samples; None: there is none.
        litert: LiteRT on the same samples; a text says why not; None: it was not wanted.
        seconds: host time.
    """

    samples: int
    steps: int
    on: Place
    scores: Scores
    saturated: float = 0.0
    cycles: Spread | None = None
    float_model: Beside | None = None
    litert: Beside | str | None = None
    seconds: float = 0.0

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the outputs, see `Scores.accuracy`."""
        return self.scores.accuracy

    def record(self) -> DataRecord:
        """Return the key ``data`` of the JSON document ``covp.run/1``."""
        litert = self.litert
        return DataRecord(
            samples=self.samples,
            steps=self.steps,
            on=self.on,
            **_scores(self.scores),
            saturated=self.saturated,
            cycles=self.cycles,
            float=_beside(self.float_model) if self.float_model else None,
            litert=_beside(litert) if isinstance(litert, Beside) else None,
            litert_reason=litert if isinstance(litert, str) else None,
            seconds=self.seconds,
        )


class MeanErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Mean differences between outputs and target values.

    Attributes:
        absolute: mean of the magnitudes; null: not finite
        squared: mean of the squares
    """

    absolute: Amount | None = None
    squared: Amount | None = None


class BesideRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Another computation of the same samples.

    Attributes:
        what: what computed it
        top1: these four as above
        other_classes: that it gives another class
        other_bytes: whose outputs are not the same bytes
    """

    what: str = ""
    top1: Ratio | None = None
    top5: Ratio | None = None
    auc: Ratio | None = None
    mean_error: MeanErrorRecord | None = None
    other_classes: Annotated[Count, unit("samples")] | None = None
    other_bytes: Annotated[Count, unit("samples")] | None = None


class DataRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How right the model is over samples.

    Attributes:
        samples: that were run
        steps: of each sample, one after the other from a reset
        on: `device`, or `reference`: the bit-exact reference in numpy, without the device
        top1: share of samples whose label has the greatest output
        top5: among the first five, from ten classes on
        auc: area under the ROC curve, of scores and of autoencoders
        mean_error: between dequantized outputs and target values
        saturated: share of the inputs' floats that their type cannot hold
        cycles: of the inferences; null: the reference, or a device without
        float: the float model on the same samples (`--float-model`)
        litert: LiteRT on the same samples, as `data.float`
        litert_reason: why there is no LiteRT
        seconds: host time
    """

    samples: Annotated[Count, unit("samples")]
    steps: Annotated[Count, unit("inferences")] = 1
    on: Literal["device", "reference"]
    top1: Ratio | None = None
    top5: Ratio | None = None
    auc: Ratio | None = None
    mean_error: MeanErrorRecord | None = None
    saturated: Ratio = 0.0
    cycles: Annotated[Spread, unit("cycles")] | None = None
    float: BesideRecord | None = None
    litert: BesideRecord | None = None
    litert_reason: str | None = None
    seconds: Seconds = 0.0


def _beside(other: Beside) -> BesideRecord:
    return BesideRecord(
        what=other.what,
        **_scores(other.scores),
        other_classes=other.other_classes,
        other_bytes=other.other_bytes,
    )


def _scores(scores: Scores) -> dict[str, Any]:
    """Return the keys of figures of merit; JSON has no NaN and no infinities: those are null."""
    error = scores.mean_error
    values = {"top1": scores.top1, "top5": scores.top5, "auc": scores.auc}
    if error is None:
        return {**values, "mean_error": None}
    shown = [value if math.isfinite(value) else None for value in (error.absolute, error.squared)]
    return {**values, "mean_error": MeanErrorRecord(absolute=shown[0], squared=shown[1])}
