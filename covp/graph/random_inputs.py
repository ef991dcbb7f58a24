"""`random_inputs`: seeded values for the inputs of a graph, program or operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


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


def random_inputs(tensors: Iterable[Shaped], seed: int) -> list[NDArray[Any]]:
    """One array per tensor: integers uniform over their whole range, floats standard normal.

    Args:
        tensors: in the order in which values are drawn.
        seed: of numpy's default generator; the same seed gives the same values.
    """
    rng = np.random.default_rng(seed)
    return [_draw(rng, tensor) for tensor in tensors]


def _draw(rng: np.random.Generator, tensor: Shaped) -> NDArray[Any]:
    if tensor.dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(tensor.dtype)
    info = np.iinfo(tensor.dtype)
    drawn: NDArray[Any] = rng.integers(
        info.min, info.max, tensor.shape, tensor.dtype, endpoint=True
    )
    return drawn
