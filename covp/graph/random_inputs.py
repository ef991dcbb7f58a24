"""`random_inputs`: seeded values for the inputs of a graph, program or operator; probing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Quantization


class Shaped(Protocol):
    """A tensor as far as its values can be drawn: `Tensor`, `ProgramTensor`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """All dimensions."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """An integer or float type."""
        ...


class Probed(Shaped, Protocol):
    """A tensor whose zero point is known."""

    @property
    def quantization(self) -> Quantization | None:
        """None for float and plain integer tensors."""
        ...


def random_inputs(tensors: Iterable[Shaped], seed: int) -> list[NDArray[Any]]:
    """One array per tensor: integers uniform over their whole range, floats standard normal.

    Args:
        tensors: in the order in which values are drawn.
        seed: of numpy's default generator; the same seed gives the same values.
    """
    rng = np.random.default_rng(seed)
    return [_draw(rng, tensor) for tensor in tensors]


def probing_inputs(tensors: Iterable[Probed], seed: int) -> dict[str, list[NDArray[Any]]]:
    """Inputs that random ones leave out, by what they are: one array per tensor for each.

    "near the zero point": at most 3 steps from it, so that little saturates; of floats a hundredth
    of the normal distribution. "lowest, highest": the first half of the elements is the lowest
    value, the rest the highest, so that sums are driven to both ends. "alternating": lowest and
    highest in turns. The ends of floats are -8 and 8.

    Args:
        tensors: the inputs.
        seed: of the random ones among them.
    """
    listed, rng = list(tensors), np.random.default_rng(seed)
    return {
        "near the zero point": [_near_zero(rng, tensor) for tensor in listed],
        "lowest, highest": [_ends(t, lambda index: 2 * index >= index.size) for t in listed],
        "alternating": [_ends(t, lambda index: index % 2 == 1) for t in listed],
    }


def _near_zero(rng: np.random.Generator, tensor: Probed) -> NDArray[Any]:
    if tensor.dtype.kind == "f":
        return (rng.standard_normal(tensor.shape) / 100).astype(tensor.dtype)
    zero_point = 0 if tensor.quantization is None else int(tensor.quantization.zero_point[0])
    drawn = zero_point + rng.integers(-3, 3, tensor.shape, np.int64, endpoint=True)
    return np.clip(drawn, *_range(tensor.dtype)).astype(tensor.dtype)


def _ends(tensor: Probed, is_high: Callable[[NDArray[np.intp]], NDArray[np.bool_]]) -> NDArray[Any]:
    low, high = (-8, 8) if tensor.dtype.kind == "f" else _range(tensor.dtype)
    index = np.arange(int(np.prod(tensor.shape)))
    return np.where(is_high(index), high, low).astype(tensor.dtype).reshape(tensor.shape)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype == np.bool_:
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _draw(rng: np.random.Generator, tensor: Shaped) -> NDArray[Any]:
    if tensor.dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(tensor.dtype)
    low, high = _range(tensor.dtype)
    drawn: NDArray[Any] = rng.integers(low, high, tensor.shape, tensor.dtype, endpoint=True)
    return drawn
