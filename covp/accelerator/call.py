"""The steps that a match is lowered to, and what the core would take for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Tensor


@dataclass(frozen=True, eq=False)
class Workspace:
    """Memory in RAM that a layer needs while it runs, from the memory planner, 16-byte aligned."""

    nbytes: int


@dataclass(frozen=True, eq=False)
class Constant:
    """An array in flash: weights in the accelerator's own layout, tables. 4-byte aligned."""

    name: str
    data: NDArray[Any]


@dataclass(frozen=True, eq=False)
class RegisterImage:
    """A constant array of words (``const uintptr_t *``): the values of registers in a row.

    Where the core has a data cache (``#if COVP_DATA_CACHE_LINE``) they are followed by a word for
    each other argument of the call: the bytes in RAM from there to the end of the tensor or
    workspace, 0 for constants and numbers. A driver cleans and invalidates these bytes.

    Attributes:
        name: of the array.
        words: the name of each register, and its value: unsigned 32 bits or a constant's address.
    """

    name: str
    words: tuple[tuple[str, int | Constant], ...]


@dataclass(frozen=True, eq=False)
class TensorSlice:
    """A tensor or workspace from an offset on, for calls that a layer is cut into.

    Attributes:
        whole: a tensor or workspace.
        offset: elements from its start; bytes in a workspace.
    """

    whole: Tensor | Workspace
    offset: int


Argument = TensorSlice | Tensor | Workspace | Constant | RegisterImage | int | float


@dataclass(frozen=True)
class CCall:
    """A call of a driver function.

    Attributes:
        function: its name; a header of the driver declares it.
        header: that header's file name.
        arguments: in C order. Tensors, workspace, constants and words are passed as pointers
            (tensors that are constants become arrays in flash), numbers as literals.
    """

    function: str
    header: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Requantize:
    """A requantization of int32 sums to int8 on the core, as TFLM does it, per channel.

    Attributes:
        sums: int32, ``output``'s shape, channels last.
        output: the int8 tensor that the layer writes.
        multiplier, shift: int32, one for each channel; shift is positive to the left.
        zero_point: of the output.
        clamp: lowest and highest stored value, both allowed.
        bound: no sum is larger than this in magnitude.
    """

    sums: Workspace | Tensor
    output: Tensor
    multiplier: NDArray[np.int32]
    shift: NDArray[np.int32]
    zero_point: int
    clamp: tuple[int, int]
    bound: int


@dataclass(frozen=True)
class CoreKernel:
    """A generated kernel that computes a layer on the core with the unit's instructions.

    Attributes:
        features: of the core besides its own; `covp.hardware.intrinsics` has the instructions
            that they stand for.
    """

    features: frozenset[str]


Step = CCall | Requantize | CoreKernel


class CoreCosts(Protocol):
    """An estimator of the cycles that the core needs; None where they are unknown."""

    def operators(self, graph: Graph) -> Mapping[Op, int | None]:
        """Return the cycles of each operator of a graph after all passes."""
        ...

    def requantizations(self, steps: Sequence[Requantize]) -> Sequence[int | None]:
        """Return the cycles of each step that an accelerator leaves to the core."""
        ...


class _Unknown:
    """An estimator for which all costs are unknown."""

    def operators(self, graph: Graph) -> Mapping[Op, int | None]:
        """Return None for each operator."""
        return dict.fromkeys(graph.ops)

    def requantizations(self, steps: Sequence[Requantize]) -> Sequence[int | None]:
        """Return None for each step."""
        return [None] * len(steps)


NO_COSTS: CoreCosts = _Unknown()
"""Unknown costs of the core, with which accelerators get whatever they accept."""
