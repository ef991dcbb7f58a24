"""`Task`: what a benchmark of MLPerf Tiny asks of a model, and how samples become its inputs.

Names, sizes, classes, quality targets and the layout of samples are those of mlcommons/tiny
(benchmark/evaluation/datasets/README.md and the closed division's rules); the preparation of inputs
is that of its reference boards (benchmark/reference_submissions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.evaluation.data.stored import quantize
from covp.graph.graph import Graph, Tensor


def top_1(answers: Sequence[float], labels: Sequence[int]) -> float:
    """Return the share of answers that are the label."""
    return float(np.mean(np.asarray(answers) == np.asarray(labels)))


def label_ranks(values: NDArray[Any], labels: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return how many classes rank above the label: 0 where it is the first greatest value.

    Args:
        values: (samples, classes).
        labels: (samples,), each a class.
    """
    own = np.take_along_axis(values, labels[:, None].astype(np.int64), axis=1)
    before = np.arange(values.shape[1]) < labels[:, None]
    return np.asarray(np.sum((values > own) | ((values == own) & before), axis=1), np.int64)


def area_under_curve(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Return the area under the receiver operating characteristic, from ranks.

    It is the probability that a sample of class 1 has a greater score than one of class 0, equal
    ones count half: the Mann-Whitney statistic (Hanley and McNeil, Radiology 143, 1982).

    Args:
        scores: finite.
        labels: 0 or 1, both of them at least once.
    """
    values, is_one = np.asarray(scores, np.float64), np.asarray(labels) == 1
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[where]  # from 1; equal scores share their mean rank
    ones, zeros = int(is_one.sum()), int((~is_one).sum())
    statistic = ranks[is_one].sum() - ones * (ones + 1) / 2
    return float(statistic / (ones * zeros))


Array = NDArray[Any]
Kind = Literal["image", "features", "spectrum", "stream"]
Metric = Literal["top-1", "AUC"]


@dataclass(frozen=True)
class Task:
    """One benchmark.

    Attributes:
        name: of the benchmark, such as "ic01".
        model: the zoo's name of the reference model.
        folder: of its samples in the runner's folder of datasets.
        kind: of a sample. "image": bytes, 0 is black. "features": int8, quantized for the reference
            model. "spectrum": windows of little-endian float32. "stream": audio, which only a board
            with a microphone takes.
        elements: of the model's input and output.
        classes: in the samples' labels.
        zero_point: of the input that the preparation is right for; None: any.
        target: the closed division's least quality; None: it is no top-1 accuracy or AUC.
    """

    name: str
    model: str
    folder: str
    kind: Kind
    elements: tuple[int, int]
    classes: int
    zero_point: int | None = None
    target: float | None = None

    @property
    def metric(self) -> Metric:
        """Metric of the quality of the results."""
        return "AUC" if self.kind == "spectrum" else "top-1"

    @property
    def element_bytes(self) -> int:
        """Bytes of each element of the input in a sample."""
        return 4 if self.kind == "spectrum" else 1

    @property
    def sample_bytes(self) -> int:
        """Bytes of a sample for one inference."""
        return self.elements[0] * self.element_bytes

    def demand(self, graph: Graph) -> None:
        """Raise ModelError if samples cannot become inputs of the model."""
        tensors = (*graph.inputs, *graph.outputs)
        if tuple(tensor.size for tensor in tensors) != self.elements:
            found = " and ".join(str(tensor.size) for tensor in tensors)
            raise ModelError(
                f"{graph.name}: {self.name} maps {self.elements[0]} elements to "
                f"{self.elements[1]}, this model has {found}"
            )
        for tensor in tensors:
            if tensor.dtype != np.int8 or tensor.quantization is None:
                raise ModelError(
                    f"{graph.name}: {tensor.name} is {tensor.dtype}; samples of {self.name} are "
                    "for int8 models: quantize the model"
                )
        if self.zero_point not in (None, graph.inputs[0].zero_point):
            raise ModelError(
                f"{graph.name}: the input's zero point is {graph.inputs[0].zero_point}; samples of "
                f"{self.name} are for {self.zero_point}, as of the reference model"
            )

    def input(self, sample: bytes, tensor: Tensor) -> Array:
        """Return the model's input for a sample.

        Args:
            sample: `sample_bytes` bytes.
            tensor: the input.

        Returns:
            int8, of the tensor's shape.
        """
        if self.kind == "image":
            pixels = np.frombuffer(sample, np.uint8)
            return (pixels.astype(np.int16) - 128).astype(np.int8).reshape(tensor.shape)
        if self.kind == "features":
            return np.frombuffer(sample, np.int8).reshape(tensor.shape)
        return quantize(_floats(sample), tensor).reshape(tensor.shape)

    def answer(self, sample: bytes, output: Array, tensor: Tensor) -> float:
        """Return an output's answer: the class of the greatest, or the distance from the input.

        Args:
            sample: that the input was made of.
            output: int8, of the tensor's shape.
            tensor: the output.

        Returns:
            The index of the first greatest element; of a spectrum the mean squared difference
            between the dequantized output and the sample, in double precision.
        """
        flat = output.reshape(-1)
        if self.kind != "spectrum":
            return float(np.argmax(flat))
        steps = (flat.astype(np.int32) - tensor.zero_point).astype(np.float32)
        differences = steps * np.float32(tensor.scale) - _floats(sample)
        return float(np.mean(differences.astype(np.float64) ** 2))


def _floats(sample: bytes) -> Array:
    return np.frombuffer(sample, np.dtype("<f4")).astype(np.float32)


TASKS = {
    task.name: task
    for task in (
        Task("ic01", "resnet", "ic01", "image", (3072, 10), 10, -128, 0.85),
        Task("ic02", "resnet_large", "ic01", "image", (3072, 10), 10, -128, 0.91),
        Task("kws01", "kws", "kws01", "features", (490, 12), 12, 83, 0.90),
        Task("vww01", "vww", "vww01", "image", (27648, 2), 2, -128, 0.80),
        Task("ad01", "toycar", "ad01", "spectrum", (640, 640), 2, None, 0.85),
        Task("sww01", "sww", "sww01", "stream", (1200, 3), 3),
    )
}
"""Tasks by name. Labels of ic02's samples are ic01's; sww01's target counts wrong detections."""


def find_task(graph: Graph) -> Task | None:
    """Return the benchmark that a model is for; None where it is for none.

    A zoo model's name says it, of another one the elements of its input and output; what has those
    of ic01 is taken for it, not for ic02.

    Args:
        graph: of the model.
    """
    if graph.source != "file":
        return next((task for task in TASKS.values() if task.model == graph.name), None)
    sizes = tuple(tensor.size for tensor in (*graph.inputs, *graph.outputs))
    return next((task for task in TASKS.values() if task.elements == sizes), None)
