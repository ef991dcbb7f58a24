"""`ArgumentVisitor`: one rendering of driver arguments, as C text or as values for a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from covp.accelerator.call import Constant, RegisterImage, TensorSlice, Workspace
from covp.errors import AcceleratorError
from covp.graph.graph import Tensor

_T = TypeVar("_T")
_NUMBERS = (bool, int, float, np.integer, np.floating)


class ArgumentVisitor(ABC, Generic[_T]):
    """Renders each object once, however often calls use it.

    Attributes:
        where: start of error messages: the accelerator and the layer.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._rendered: dict[int, tuple[object, _T]] = {}
        self._methods: dict[type[Any], Callable[[Any], _T]] = {
            Constant: self.constant,
            RegisterImage: self.image,
            TensorSlice: self.slice,
            Workspace: self.workspace,
            Tensor: self.tensor,
        }

    def value(self, argument: object) -> _T:
        """An argument of a driver call.

        Raises:
            AcceleratorError: a driver cannot be passed it.
        """
        if isinstance(argument, _NUMBERS):
            number = float(argument) if isinstance(argument, (float, np.floating)) else None
            return self.number(int(argument) if number is None else number)
        if id(argument) not in self._rendered:
            # with the object itself, so that its id stays its own
            self._rendered[id(argument)] = argument, self._method(argument)(argument)
        return self._rendered[id(argument)][1]

    def _method(self, argument: object) -> Callable[[Any], _T]:
        for kind, method in self._methods.items():
            if isinstance(argument, kind):
                return method
        raise AcceleratorError(
            f"{self.where}: {argument!r} cannot be passed to a driver; tensors and slices of them, "
            "constants, register images, workspaces and numbers can"
        )

    @abstractmethod
    def number(self, value: int | float) -> _T:
        """A number."""

    @abstractmethod
    def constant(self, constant: Constant) -> _T:
        """The address of an array."""

    @abstractmethod
    def image(self, image: RegisterImage) -> _T:
        """The address of an array of words, some of which are addresses of constants."""

    @abstractmethod
    def slice(self, part: TensorSlice) -> _T:
        """An address inside a tensor or workspace."""

    @abstractmethod
    def workspace(self, workspace: Workspace) -> _T:
        """The address of a workspace."""

    @abstractmethod
    def tensor(self, tensor: Tensor) -> _T:
        """The address of a tensor."""
