"""`ArgumentVisitor`: one rendering of driver arguments, as C text or as values for a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from covp.accelerator.call import CCall, Constant, RegisterImage, TensorSlice, Workspace
from covp.errors import AcceleratorError
from covp.graph.graph import Tensor

_T = TypeVar("_T")
_NUMBERS = (bool, int, float, np.integer, np.floating)


class ArgumentVisitor(ABC, Generic[_T]):
    """A renderer of arguments: each object once, however often calls use it.

    Attributes:
        where: start of error messages: the accelerator and the layer.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._rendered: dict[int, tuple[object, _T]] = {}
        self._images: dict[tuple[int, tuple[int, ...]], tuple[RegisterImage, _T]] = {}
        self._methods: dict[type[Any], Callable[[Any], _T]] = {
            Constant: self.constant,
            RegisterImage: lambda image: self._image(image, ()),
            TensorSlice: self.slice,
            Workspace: self.workspace,
            Tensor: self.tensor,
        }

    def render(self, step: CCall) -> list[_T]:
        """Return a call's arguments; its register images know the others' sizes, see `image`."""
        given = step.arguments
        sizes = tuple(_bytes_from(a) for a in given if not isinstance(a, RegisterImage))
        return [
            self._image(argument, sizes)
            if isinstance(argument, RegisterImage)
            else self.value(argument)
            for argument in given
        ]

    def _image(self, image: RegisterImage, sizes: tuple[int, ...]) -> _T:
        key = id(image), sizes
        if key not in self._images:
            self._images[key] = image, self.image(image, sizes)
        return self._images[key][1]

    def value(self, argument: object) -> _T:
        """Return an argument of a driver call.

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
        """Return a number."""

    @abstractmethod
    def constant(self, constant: Constant) -> _T:
        """Return the address of an array."""

    @abstractmethod
    def image(self, image: RegisterImage, sizes: tuple[int, ...]) -> _T:
        """Return the address of an array of words, some of which are addresses of constants.

        Args:
            image: the words.
            sizes: that follow them where the core has a data cache: of each other argument of the
                call the bytes in RAM from there to the end of its tensor or workspace, else 0.
        """

    @abstractmethod
    def slice(self, part: TensorSlice) -> _T:
        """Return an address inside a tensor or workspace."""

    @abstractmethod
    def workspace(self, workspace: Workspace) -> _T:
        """Return the address of a workspace."""

    @abstractmethod
    def tensor(self, tensor: Tensor) -> _T:
        """Return the address of a tensor."""


def _bytes_from(argument: object) -> int:
    """Return the bytes from a pointer into RAM to its end; 0 for all else."""
    if isinstance(argument, TensorSlice):
        whole = argument.whole
        element = whole.dtype.itemsize if isinstance(whole, Tensor) else 1
        return max(0, _bytes_from(whole) - int(argument.offset) * element)
    if isinstance(argument, Tensor):
        return 0 if argument.constant else argument.nbytes
    return argument.nbytes if isinstance(argument, Workspace) else 0
