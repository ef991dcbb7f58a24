"""`Aftermath`: all that a call of a kernel leaves behind, to be compared with another call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.laboratory.buffers import Buffer
from covp.laboratory.kernel import Kernel, Value
from covp.runtime.linking import RAM_SECTIONS
from covp.runtime.tensor import DeviceTensor

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class Aftermath:
    """A call that has ended.

    Attributes:
        result: of the function.
        arguments: those of the call; arrays as they are after it.
        variables: of the kernel's module, by name: numbers as unsigned ones, others as bytes.
    """

    result: Value
    arguments: tuple[Any, ...]
    variables: dict[str, NDArray[Any]]

    @staticmethod
    def of(
        kernel: Kernel, result: Value, arguments: tuple[Any, ...], names: Iterable[str] | None
    ) -> Aftermath:
        """Collect what a call has left.

        Args:
            kernel: that was called.
            result: of the function.
            arguments: of the call, arrays as they are after it.
            names: of the variables; None: all that the kernel's module has.
        """
        known = variables(kernel)
        wanted = known if names is None else list(names)
        return Aftermath(result, arguments, {name: _variable(kernel, name) for name in wanted})

    def parts(self, kernel: Kernel) -> dict[str, NDArray[Any]]:
        """Return all that is compared of a call of ``kernel``, by its name in messages."""
        found: dict[str, NDArray[Any]] = {}
        if self.result is not None:
            found["the result"] = np.array(self.result)
        for parameter, argument in zip(kernel.signature.parameters, self.arguments, strict=True):
            value = _array(argument)
            if value is not None:
                found[f"argument {parameter.name}"] = value
        return {**found, **{f"variable {name}": one for name, one in self.variables.items()}}


def variables(kernel: Kernel) -> list[str]:
    """Return the names of the variables of the module of ``kernel``."""
    image = kernel.function.module.image
    blocks = [image.blocks[name] for name in RAM_SECTIONS if name in image.blocks]
    return sorted(
        symbol.name
        for symbol in image.elf.symbols.values()
        if symbol.size and not symbol.function and not symbol.name.startswith(".L")
        if any(block.address <= symbol.address < block.end for block in blocks)
    )


def _variable(kernel: Kernel, name: str) -> NDArray[Any]:
    module = kernel.function.module
    raw = module.session.read(module.address(name), module.image.elf.symbols[name].size)
    return np.frombuffer(raw, _WORDS.get(len(raw), np.uint8))


def _array(argument: Any) -> NDArray[Any] | None:
    if isinstance(argument, Buffer):
        return argument.array
    if isinstance(argument, DeviceTensor):
        return argument.numpy()
    return argument if isinstance(argument, np.ndarray) else None


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether ``one`` value and the ``other`` have the same bits."""
    return one.tobytes() == other.tobytes()


def place_of(one: NDArray[Any], other: NDArray[Any]) -> tuple[str, Any, Any]:
    """Find the first element in which ``one`` value and the ``other`` differ.

    Its index as "[3]" ("" of a single value), and both elements.
    """
    left, right = np.atleast_1d(one).ravel(), np.atleast_1d(other).ravel()
    at = next((i for i in range(left.size) if not same(left[i], right[i])), 0)
    if left.size == 1:
        return "", left[0].item(), right[0].item()
    index = np.unravel_index(at, one.shape)
    text = "".join(f"[{int(i)}]" for i in index)
    return text, left[at].item(), right[at].item()


def find_failure(call: Aftermath, expected: Any) -> str:
    """Say what is wrong with a ``call``, "" if it is as ``expected`` (a result or a function)."""
    if not callable(expected):
        right = bool(call.result == expected)
        return "" if right else f"it returns {call.result}, not {expected}"
    try:
        right = expected(call)
    except AssertionError as error:
        return str(error) or "the assertion of expected= failed"
    return "" if right is None or right else f"expected= is False; it returns {call.result}"
