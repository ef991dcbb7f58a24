"""`OpDefinition`: what the graph knows of an operator kind, and the registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError, near_misses
from covp.graph.graph import Op

Array = NDArray[Any]
Shape = tuple[int, ...]


def no_macs(op: Op) -> int:
    """For operators that multiply nothing worth counting."""
    return 0


@dataclass(frozen=True)
class OpDefinition:
    """Shape rule, reference implementation and cost of one operator kind.

    Attributes:
        infer_shapes: the outputs' shapes from the inputs' and the attributes; raises ModelError
            where the inputs do not fit each other.
        reference: the inputs' values (None for one that is left out) to the outputs', with TFLM's
            arithmetic for int8.
        macs: multiply-accumulates as the model states them.
    """

    infer_shapes: Callable[[Op], list[Shape]]
    reference: Callable[[Op, Sequence[Array | None]], list[Array]]
    macs: Callable[[Op], int] = no_macs


OPS: dict[str, OpDefinition] = {}
"""Operator kind to definition; a new operator registers itself here."""


def definition(kind: str) -> OpDefinition:
    """The definition of an operator kind.

    Raises:
        ModelError: there is none.
    """
    try:
        return OPS[kind]
    except KeyError:
        raise ModelError(f"unknown operator {kind}; {near_misses(kind, OPS)}") from None


def ieee() -> np.errstate:
    """Around arithmetic of floats: overflow, infinity and NaN are results, nothing to warn of."""
    return np.errstate(all="ignore")


def given(values: Sequence[Array | None], position: int) -> Array:
    """The value of an input that is not optional."""
    value = values[position]
    assert value is not None
    return value
