"""`Variables`: what a model keeps between inferences, as versions that operators read and make.

Two kinds of them: tensors marked as variable, which LSTM, SVDF and CIRCULAR_BUFFER read and change,
and resources (VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE). Each becomes a `State`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.graph import State, Tensor

CHANGED_INPUTS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19), "SVDF": (4,)}
"""Variable tensors that an operator reads and changes; each is a further output of the `Op`."""


@dataclass(eq=False)
class _Variable:
    """A variable; ``before`` is None while no operator needs the previous inference's value."""

    before: Tensor | None = None
    now: Tensor | None = None


class Variables:
    """The variables of one subgraph.

    Args:
        initial: the values of resources after the model's initialization, by key.
    """

    def __init__(self, initial: dict[Hashable, NDArray[Any]]) -> None:
        self._initial = initial
        self._variables: dict[Hashable, _Variable] = {}

    def read(self, key: Hashable, declared: Tensor) -> Tensor:
        """Return the variable's value at this point.

        Args:
            key: of the variable.
            declared: a tensor of its shape and type, which becomes the previous value.
        """
        variable = self._variables.setdefault(key, _Variable())
        if variable.now is None:
            variable.before = variable.now = declared
        _demand_same(variable.now, declared)
        return variable.now

    def write(self, key: Hashable, value: Tensor) -> None:
        """Give the variable another value from here on."""
        variable = self._variables.setdefault(key, _Variable())
        if variable.now is not None:
            _demand_same(variable.now, value)
        variable.now = value

    def final_values(self) -> dict[Hashable, Tensor]:
        """Return the values at the end by key."""
        return {key: v.now for key, v in self._variables.items() if v.now is not None}

    def states(self) -> Iterator[State]:
        """Yield a state per variable whose old value is read; make unwritten ones constants."""
        for key, variable in self._variables.items():
            before, after = variable.before, variable.now
            if before is None or after is None:
                continue
            initial = self._initial_value(key, before)
            if after is before:
                before.data = initial
            else:
                before.data = None
                yield State(before.name, before, after, initial)

    def _initial_value(self, key: Hashable, before: Tensor) -> NDArray[Any]:
        """Return the initialized value, or the tensor's own values, or 0 (int8: its zero point)."""
        value = self._initial.get(key, before.data)
        if value is None:
            zero = before.zero_point if before.dtype == np.int8 and before.quantization else 0
            return np.full(before.shape, zero, before.dtype)
        if value.shape != before.shape or value.dtype != before.dtype:
            raise ModelError(f"variable {before.name} is initialized with another shape or type")
        return value


def _demand_same(tensor: Tensor, other: Tensor) -> None:
    if tensor.shape != other.shape or tensor.dtype != other.dtype:
        raise ModelError(
            f"a variable is {tensor.dtype} {tensor.shape} as {tensor.name} and {other.dtype} "
            f"{other.shape} as {other.name}; one shape and type is needed"
        )
