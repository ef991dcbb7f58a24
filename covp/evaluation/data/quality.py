"""`Quality`: how right a model is over samples, as an object and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

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

    def record(self) -> dict[str, Any]:
        """Return the scores as JSON, with null for NaN and infinities."""
        found = asdict(self)
        if self.mean_error is not None:
            errors = asdict(self.mean_error).items()
            found["mean_error"] = {n: v if math.isfinite(v) else None for n, v in errors}
        return found


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

    def record(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        return {
            "what": self.what,
            **self.scores.record(),
            "other_classes": self.other_classes,
            "other_bytes": self.other_bytes,
        }


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

    def record(self) -> dict[str, Any]:
        """Return the key ``data`` of the JSON document ``covp.run/1``."""
        litert = self.litert
        return {
            "samples": self.samples,
            "steps": self.steps,
            "on": self.on,
            **self.scores.record(),
            "saturated": self.saturated,
            "cycles": asdict(self.cycles) if self.cycles else None,
            "float": self.float_model.record() if self.float_model else None,
            "litert": litert.record() if isinstance(litert, Beside) else None,
            "litert_reason": litert if isinstance(litert, str) else None,
            "seconds": self.seconds,
        }
