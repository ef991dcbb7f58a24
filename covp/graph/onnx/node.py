"""`OnnxNode`: one ONNX operator with its inputs as tensors and its attributes as Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.graph import Tensor


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One operator of an ONNX model, as a converter gets it.

    Attributes:
        kind: ONNX's operator, e.g. "Conv".
        name: of the node, unique; reports show it.
        index: position in the model's graph.
        opset: version of the operator's domain that the model was written for.
        inputs: None is an optional input left out.
        outputs: names; empty for an optional output that is not wanted.
        attributes: as ONNX states them: int, float, str, numpy array, list; a graph stays a
            GraphProto.
        domain: "" is ONNX's own.
        stated: the shape of each output as the model states it, None where it does not. It settles
            what depends on values known at run time only, such as Reshape by an input.
    """

    kind: str
    name: str
    index: int
    opset: int
    inputs: list[Tensor | None]
    outputs: list[str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    stated: Sequence[tuple[int, ...] | None] = ()

    def input(self, position: int) -> Tensor:
        """Return a required input. Raises ModelError: it is missing."""
        tensor = self.optional(position)
        if tensor is None:
            raise ModelError(f"input {position} is missing")
        return tensor

    def optional(self, position: int) -> Tensor | None:
        """Return an optional input, or None if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def wants(self, position: int) -> bool:
        """Return whether an output is used."""
        return position < len(self.outputs) and bool(self.outputs[position])

    def stated_shape(self, what: str) -> tuple[int, ...]:
        """Return the first output's shape as the model states it.

        Args:
            what: would give the shape if it were constant, for the error.

        Raises:
            ModelError: the model does not state it.
        """
        shape = self.stated[0] if self.stated else None
        if shape is None:
            raise ModelError(
                f"{what} is computed at run time and the model does not state the output's shape; "
                "export it with static shapes"
            )
        return shape

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or ``default`` if the node does not have it."""
        return self.attributes.get(name, default)

    def constant(self, position: int, what: str) -> NDArray[Any]:
        """Return the value of an input that has to be known at compile time.

        Args:
            position: of the input.
            what: it is, for the error.

        Raises:
            ModelError: it is missing, or computed at run time.
        """
        tensor = self.input(position)
        if tensor.data is None:
            raise ModelError(f"{what} ({tensor.name}) must be constant")
        return tensor.data

    def integers(self, position: int, what: str) -> list[int]:
        """Return a constant input as a flat list of int; see `constant`."""
        return [int(value) for value in np.asarray(self.constant(position, what)).reshape(-1)]

    def integers_of(self, name: str, position: int, what: str) -> list[int] | None:
        """Return the integers that older opsets keep in an attribute and newer ones in an input.

        Args:
            name: of the attribute.
            position: of the input.
            what: they are, for the error.

        Returns:
            None where neither is given.
        """
        if name in self.attributes:
            return [int(value) for value in self.attributes[name]]
        if self.optional(position) is None:
            return None
        return self.integers(position, what)
