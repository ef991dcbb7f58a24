"""`Layout`: where the samples, and the steps of a sequence, are in an array of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.evaluation.data.stored import Quantizer, quantizer, real
from covp.graph.graph import Graph, Tensor

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Samples as one input of a model.

    Attributes:
        stored: (samples, steps, *shape of the input), of its dtype.
        reals: the same as real values: the floats that were given, or what is stored.
        beyond: how many floats the type cannot hold.
    """

    stored: Array
    reals: Array
    beyond: int

    @staticmethod
    def together(parts: Sequence[Inputs]) -> Inputs:
        """Concatenate the inputs of parts."""
        stored = np.concatenate([part.stored for part in parts])
        reals = np.concatenate([part.reals for part in parts])
        return Inputs(stored, reals, sum(part.beyond for part in parts))


@dataclass(frozen=True)
class Layout:
    """Allowed arrays for one input of a model, and their conversion to its inputs.

    Attributes:
        tensor: the input.
        quantize: converts floats to it.
        keeps_states: of the model: a sample may be a sequence, which starts from the states after a
            reset and has its answer at the end.
        axis: of time in the input of a network on a stream; None: it is on none.
    """

    tensor: Tensor
    quantize: Quantizer
    keeps_states: bool = False
    axis: int | None = None

    @staticmethod
    def of(graph: Graph) -> list[Layout]:
        """Return the layout of each input."""
        axis = graph.streaming.axis if graph.streaming else None
        keeps_states, quantize = bool(graph.states), quantizer(graph)
        return [Layout(tensor, quantize, keeps_states, axis) for tensor in graph.inputs]

    def count(self, shape: Shape, where: str) -> tuple[int, int]:
        """Return the number of samples in an array, and of inferences of each.

        The first axis is of samples. Dimensions of 1 of the input may be left out.

        Args:
            shape: of the array.
            where: names it in errors.

        Raises:
            UsageError: it does not fit the input.
        """
        found = self._count(shape)
        if found is None:
            raise UsageError(f"{where}: has the shape {shape}; {self.description}")
        return found

    def steps_of_one(self, shape: Shape, where: str) -> int:
        """Return the inferences of an array's only sample, whose axis of samples may be left out.

        Args:
            shape, where: as for `count`.

        Raises:
            UsageError: it does not fit the input, or there are more samples.
        """
        for whole in ((1, *shape), shape):
            found = self._count(whole)
            if found is not None and found[0] == 1:
                return found[1]
        raise UsageError(
            f"{where}: has the shape {shape}, but must be one sample; {self.description}"
        )

    def _count(self, shape: Shape) -> tuple[int, int] | None:
        own = self.tensor.shape
        if shape == own:
            return 1, 1
        if shape and _squeeze(shape[1:]) == _squeeze(own):
            return shape[0], 1
        steps = self._steps(shape)
        return (shape[0], steps) if steps else None

    def _steps(self, shape: Shape) -> int:
        """Return the inferences of each sample where samples are sequences; 0: they are not."""
        own = self.tensor.shape
        if not self.keeps_states or len(shape) < 2:
            return 0
        if _squeeze(shape[2:]) == _squeeze(own):
            return shape[1]
        if self.axis is None:
            return 0
        before, hop, after = own[: self.axis], own[self.axis], own[self.axis + 1 :]
        rows = prod(shape[1:]) // max(prod(before) * prod(after), 1)
        is_stream = _squeeze(shape[1:]) == _squeeze((*before, rows, *after))
        return rows // hop if is_stream and rows % hop == 0 else 0

    def inputs(self, values: Array, steps: int, where: str) -> Inputs:
        """Convert values of samples to inputs of the model.

        Args:
            values: of samples, of a shape that `count` takes; floats are quantized.
            steps: inferences of each.
            where: names them in errors.

        Raises:
            UsageError: they are of another type, or no finite numbers.
        """
        stored, reals, beyond = self._store(values, where)
        return Inputs(self._arrange(stored, steps), self._arrange(reals, steps), beyond)

    def _arrange(self, values: Array, steps: int) -> Array:
        """Return the values as (samples, steps, *shape of the tensor)."""
        own = self.tensor.shape
        if self.axis is None or steps == 1:
            return np.ascontiguousarray(values).reshape(-1, steps, *own)
        parts = (*own[: self.axis], steps, *own[self.axis :])
        whole = np.ascontiguousarray(values).reshape(-1, *parts)
        return np.ascontiguousarray(np.moveaxis(whole, self.axis + 1, 1))

    def check_type(self, dtype: np.dtype[Any], where: str) -> None:
        """Raise UsageError if values of this type cannot be the input's."""
        tensor = self.tensor
        takes_floats = tensor.quantization is not None or tensor.dtype.kind == "f"
        if dtype != tensor.dtype and not (dtype.kind == "f" and takes_floats):
            raise UsageError(f"{where}: is {dtype}; {self.description}")

    def _store(self, values: Array, where: str) -> tuple[Array, Array, int]:
        """Return the values as stored, as reals, and how many of them the type cannot hold."""
        tensor = self.tensor
        self.check_type(values.dtype, where)
        if values.dtype == tensor.dtype or tensor.quantization is None:
            stored = values.astype(tensor.dtype, copy=False)
            return stored, real(stored, tensor), 0
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        if not np.isfinite(single).all():
            raise UsageError(f"{where}: has values that are not finite")
        info = np.iinfo(tensor.dtype)
        ends = np.array([info.min - 0.5, info.max + 0.5]) - tensor.zero_point
        low, high = (ends * tensor.scale).tolist()
        beyond = int(((single < low) | (single > high)).sum())
        return self.quantize(single, tensor), single, beyond

    @property
    def description(self) -> str:
        """Description of the allowed arrays, for errors."""
        tensor = self.tensor
        text = f"{tensor.name} takes {tensor.dtype} of shape (samples, {_extents(tensor.shape)})"
        if tensor.quantization is not None:
            scale = f"scale {tensor.scale:.6g}, zero point {tensor.zero_point}"
            text += f", stored with {scale}, or floats, which are quantized"
        if self.axis is not None:
            text += f"; or rows of a stream along axis {self.axis + 1}"
        elif self.keeps_states:
            text += f"; or sequences (samples, steps, {_extents(tensor.shape)})"
        return text


def _squeeze(shape: Shape) -> Shape:
    return tuple(extent for extent in shape if extent != 1)


def _extents(shape: Shape) -> str:
    return ", ".join(map(str, shape))
