"""`Judge`: what outputs say of samples, beside the labels; one row for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.evaluation.data.quality import MeanError, Scores
from covp.evaluation.data.tasks import area_under_curve, label_ranks
from covp.graph.graph import Graph

Array = NDArray[Any]
Kind = Literal["classes", "index", "score", "reconstruction", "values", "none"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers for samples, an array (samples,) per figure; None: not of this kind.

    Attributes:
        classes: the first greatest output, or the output where that is a class.
        ranks: classes before the label, see `label_ranks`.
        scores: that are greater the more a sample is of class 1.
        absolute, squared: mean differences from the target values, double precision.
    """

    classes: Array | None = None
    ranks: Array | None = None
    scores: Array | None = None
    absolute: Array | None = None
    squared: Array | None = None

    @staticmethod
    def together(parts: list[Answers]) -> Answers:
        """Concatenate the answers of parts."""
        names = Answers.__dataclass_fields__
        columns = {name: [getattr(part, name) for part in parts] for name in names}
        return Answers(
            **{name: np.concatenate(c) for name, c in columns.items() if c[0] is not None}
        )

    def average(self, windows: Sequence[int]) -> Answers:
        """Return the answers for samples with several inferences, with the mean of their scores.

        Args:
            windows: inferences of each sample.
        """
        if all(count == 1 for count in windows):
            return self
        assert self.scores is not None
        parts = np.split(self.scores, np.cumsum(windows)[:-1])
        return Answers(scores=np.array([np.mean(part) for part in parts]))


@dataclass(frozen=True)
class Judge:
    """Comparison of a model's outputs with its labels.

    Attributes:
        kind: "classes": the greatest of several outputs is the class. "index": the output is the
            class. "score": the only output is a score of class 1. "reconstruction": the output is
            to be the input, the squared error is the score of class 1. "values": the outputs are to
            be the labels. "none": there are no labels.
        classes: of "classes", and of "none" where outputs may be of classes.
    """

    kind: Kind
    classes: int = 0

    @staticmethod
    def of(graph: Graph, labels: Array | None, where: str) -> Judge:
        """Return how outputs of a model are compared with labels of this form.

        Args:
            graph: the model.
            labels: of `read_labels`.
            where: names them in errors.

        Raises:
            UsageError: they do not fit the model's output.
        """
        if labels is None:
            several = len(graph.outputs) == 1 and graph.outputs[0].size > 1
            is_classes = several and not _is_autoencoder(graph)
            return Judge("none", graph.outputs[0].size if is_classes else 0)
        if len(graph.outputs) > 1:
            names = ", ".join(tensor.name for tensor in graph.outputs)
            raise UsageError(f"{where}: labels are for models with one output, this has {names}")
        output, size = graph.outputs[0], graph.outputs[0].size
        if labels.dtype.kind == "f":
            if int(np.prod(labels.shape[1:])) != size:
                raise UsageError(
                    f"{where}: {int(np.prod(labels.shape[1:]))} values for each sample; "
                    f"{output.name} has {size}"
                )
            return Judge("values")
        is_binary = set(np.unique(labels).tolist()) <= {0, 1}
        if size == 1 and output.dtype.kind in "iu" and output.quantization is None:
            return Judge("index")
        if size == 1 and not is_binary:
            raise UsageError(
                f"{where}: {output.name} is one value: labels are 0 and 1 for a score, or floats "
                "for target values (labels.astype(numpy.float32))"
            )
        if size == 1 or (is_binary and size > 2 and _is_autoencoder(graph)):
            if set(np.unique(labels).tolist()) != {0, 1}:
                raise UsageError(f"{where}: all are {labels[0]}; a score needs both 0 and 1")
            return Judge("score" if size == 1 else "reconstruction")
        wrong = (labels < 0) | (labels >= size)
        if wrong.any():
            index = int(np.argmax(wrong))
            raise UsageError(
                f"{where}: sample {index} is of class {labels[index]}; {output.name} has the "
                f"classes 0 to {size - 1}"
            )
        return Judge("classes", size)

    def answers(self, outputs: Array, labels: Array | None, inputs: Array) -> Answers:
        """Return the answers that outputs give.

        Args:
            outputs: (samples, elements), real values; of "index" the stored ones.
            labels: of these samples.
            inputs: (samples, elements), real values; used for "reconstruction".
        """
        if self.kind == "none":
            return Answers(np.argmax(outputs, axis=1)) if self.classes else Answers()
        assert labels is not None
        if self.kind == "classes":
            return Answers(np.argmax(outputs, axis=1), label_ranks(outputs, labels))
        if self.kind == "index":
            return Answers(outputs[:, 0], (outputs[:, 0] != labels).astype(np.int64))
        if self.kind == "score":
            return Answers(scores=outputs[:, 0].astype(np.float64))
        wanted = inputs if self.kind == "reconstruction" else labels.reshape(outputs.shape)
        # the difference in single precision, as the runner's boards compute it
        kind = np.float32 if self.kind == "reconstruction" else np.float64
        difference = (outputs.astype(kind) - wanted.astype(kind)).astype(np.float64)
        squared = np.mean(difference**2, axis=1)
        if self.kind == "reconstruction":
            return Answers(scores=squared)
        return Answers(absolute=np.mean(np.abs(difference), axis=1), squared=squared)

    def scores(self, answers: Answers, labels: Array | None) -> Scores:
        """Return the figures of all samples together.

        Raises:
            UsageError: outputs are no numbers, so that there is no order of them.
        """
        if labels is None:
            return Scores()
        if answers.ranks is not None:
            top5 = float(np.mean(answers.ranks < 5)) if self.classes >= 10 else None
            return Scores(top1=float(np.mean(answers.ranks == 0)), top5=top5)
        if answers.scores is not None:
            if not np.isfinite(answers.scores).all():
                raise UsageError("outputs are not finite: their area under the curve is undefined")
            return Scores(auc=area_under_curve(answers.scores.tolist(), labels.tolist()))
        assert answers.absolute is not None and answers.squared is not None
        error = MeanError(float(np.mean(answers.absolute)), float(np.mean(answers.squared)))
        return Scores(mean_error=error)


def _is_autoencoder(graph: Graph) -> bool:
    return len(graph.inputs) == 1 and graph.inputs[0].size == graph.outputs[0].size
