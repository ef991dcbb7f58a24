"""`random_inputs`: seeded values for the inputs of a graph, program or operator; probing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Op, Quantization
from covp.graph.ops.definition import Domain, definition


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


def random_inputs(
    tensors: Iterable[Shaped], seed: int, readers: Sequence[Op] = ()
) -> list[NDArray[Any]]:
    """Return an array per tensor: integers uniform over their range, floats standard normal.

    Integers that have a meaning for an operator, such as indices, lengths and axes, are drawn among
    those that it takes (`OpDefinition.domains`).

    Args:
        tensors: in the order in which values are drawn.
        seed: of numpy's default generator; the same seed gives the same values.
        readers: the operators of their graph, in order.
    """
    rng, known = np.random.default_rng(seed), _domains(readers)
    return [_draw(rng, tensor, known.get(id(tensor))) for tensor in tensors]


def probing_inputs(
    tensors: Iterable[Probed], seed: int, readers: Sequence[Op] = ()
) -> dict[str, list[NDArray[Any]]]:
    """Return inputs that random ones miss, by description: an array per tensor for each.

    "near the zero point": at most 3 steps from it, so that little saturates; of floats a hundredth
    of the normal distribution. "lowest, highest": the first half of the elements is the lowest
    value, the rest the highest, so that sums are driven to both ends. "alternating": lowest and
    highest in turns. The ends of floats are -8 and 8.

    Args:
        tensors: the inputs.
        seed: of the random ones among them.
        readers: the operators of their graph, in order.
    """
    listed, rng, known = list(tensors), np.random.default_rng(seed), _domains(readers)

    def ends(is_high: Callable[[NDArray[np.intp]], NDArray[np.bool_]]) -> list[NDArray[Any]]:
        return [_ends(tensor, is_high, known.get(id(tensor))) for tensor in listed]

    return {
        "near the zero point": [_near_zero(rng, t, known.get(id(t))) for t in listed],
        "lowest, highest": ends(lambda index: 2 * index >= index.size),
        "alternating": ends(lambda index: index % 2 == 1),
    }


_KEEPS_VALUES = ("CAST", "IDENTITY", "RESHAPE", "TRANSPOSE")


def _domains(ops: Sequence[Op]) -> dict[int, Domain]:
    """Map each tensor's id to the range of values that all operators that read it take."""
    known: dict[int, Domain] = {}
    for op in reversed(ops):
        found = dict(definition(op.kind).domains(op))
        after = known.get(id(op.outputs[0]))
        if op.kind in _KEEPS_VALUES and after is not None:
            # of coordinates, whose places may be others before, what all may be
            found[0] = int(np.max(after[0])), int(np.min(after[1]))
        for position, (low, high) in found.items():
            if position < len(op.inputs) and (tensor := op.inputs[position]) is not None:
                lowest, highest = known.get(id(tensor), (low, high))
                low = np.maximum(low, lowest)
                known[id(tensor)] = low, np.maximum(low, np.minimum(high, highest))
    return known


def _near_zero(rng: np.random.Generator, tensor: Probed, domain: Domain | None) -> NDArray[Any]:
    if tensor.dtype.kind == "f":
        return np.asarray(rng.standard_normal(tensor.shape) / 100, tensor.dtype)
    zero_point = 0 if tensor.quantization is None else int(tensor.quantization.zero_point[0])
    drawn = zero_point + rng.integers(-3, 3, tensor.shape, np.int64, endpoint=True)
    return np.asarray(np.clip(drawn, *(domain or _range(tensor.dtype))), tensor.dtype)


def _ends(
    tensor: Probed,
    is_high: Callable[[NDArray[np.intp]], NDArray[np.bool_]],
    domain: Domain | None,
) -> NDArray[Any]:
    low, high = domain or ((-8, 8) if tensor.dtype.kind == "f" else _range(tensor.dtype))
    index = np.arange(int(np.prod(tensor.shape))).reshape(tensor.shape)
    return np.where(is_high(index), high, low).astype(tensor.dtype)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype == np.bool_:
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _draw(rng: np.random.Generator, tensor: Shaped, domain: Domain | None) -> NDArray[Any]:
    if tensor.dtype.kind == "f":
        return np.asarray(rng.standard_normal(tensor.shape), tensor.dtype)
    low, high = domain or _range(tensor.dtype)
    return np.asarray(rng.integers(low, high, tensor.shape, tensor.dtype, endpoint=True))
