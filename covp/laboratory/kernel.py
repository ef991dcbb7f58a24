"""`Kernel`: a C function on a device that takes numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covp.arguments import demand
from covp.errors import UsageError
from covp.laboratory.buffers import Buffer
from covp.runtime.module import Function
from covp.runtime.profile import Cost
from covp.runtime.resident import Resident
from covp.runtime.sanitizer import points_to_const
from covp.runtime.signature import Parameter, Signature

Value = int | float | bool | None
"""What a C function returns: pointers as addresses, None for void."""


class Kernel:
    """A C function that is called with numpy arrays, at once.

    ::

        kernel = Kernel(session.load_c("dot.c")["dot"])
        assert kernel(a, b, len(a)) == a.astype(int) @ b

    Args:
        function: of a module: ``session.load_c(...)["name"]``.

    Attributes:
        function: as given.
        calls: how many there were.
    """

    def __init__(self, function: Function) -> None:
        demand("function", function, Function, 'a function of a module: load_c(...)["name"]')
        self.function = function
        self._latest: Cost | None = None
        self.calls = 0

    @property
    def session(self) -> Resident:
        """Where it runs."""
        return self.function.module.session

    @property
    def signature(self) -> Signature:
        """Its C declaration."""
        return self.function.signature

    @property
    def name(self) -> str:
        """As in C."""
        return self.signature.name

    @property
    def address(self) -> int:
        """Of its first instruction."""
        return self.function.address

    @property
    def code_bytes(self) -> int:
        """Bytes of its machine code, without functions that it calls."""
        return self.function.module.image.elf.symbols[self.name].size

    @property
    def latest(self) -> Cost:
        """The cost of the latest call, of the function alone where the device counts by phase.

        Raises:
            UsageError: it was not called yet.
        """
        if self._latest is None:
            raise UsageError(f"{self.name} was not called yet: it has no cost")
        return self._latest

    @property
    def stack_bytes(self) -> int:
        """The latest call had at most so many bytes of the stack in use.

        Raises:
            UsageError: the session was not opened with ``sanitize=True``.
        """
        if self.session.sanitizer is None:
            raise UsageError("the use of the stack is known with Session(..., sanitize=True)")
        return self.session.sanitizer.stack_bytes

    def __call__(self, *arguments: Any) -> Value:
        """Call it.

        Args:
            arguments: in C order. Integers and floats are passed by value. Arrays and `Buffer`
                are copied to the device for the call; the content of those behind a pointer to
                something that is not const is copied back into the array. Tensors of the session
                are passed where they are. The same array twice is one piece of memory.

        Returns:
            the function's result.

        Raises:
            UsageError: the arguments do not fit the C declaration.
            CapacityError: they do not fit the RAM.
            DeviceFault: the function faulted; arrays are as before the call.
        """
        buffers: dict[tuple[int, int, int, int], Buffer] = {}
        changed: dict[int, Buffer] = {}
        try:
            passed = [
                self._passed(parameter, argument, buffers, changed)
                for parameter, argument in zip(self._parameters(arguments), arguments, strict=True)
            ]
            result = self._run(passed)
            for buffer in changed.values():
                buffer.fetch(self.session)
        finally:
            for buffer in buffers.values():
                buffer.free()
        return result

    def _parameters(self, arguments: Sequence[Any]) -> Sequence[Parameter]:
        expected = self.signature.parameters
        if len(arguments) != len(expected):
            plural = "s" if len(expected) != 1 else ""
            raise UsageError(
                f"{self.signature} takes {len(expected)} argument{plural}, not {len(arguments)}"
            )
        return expected

    def _passed(
        self,
        parameter: Parameter,
        argument: Any,
        buffers: dict[tuple[int, int, int, int], Buffer],
        changed: dict[int, Buffer],
    ) -> Any:
        """The argument as the function's call takes it; new buffers are placed."""
        if isinstance(argument, np.ndarray) and parameter.type.kind == "pointer":
            argument = Buffer(argument)
        if not isinstance(argument, Buffer):
            return argument
        buffer = buffers.setdefault(argument.key, argument)
        if buffer is argument:
            buffer.place(self.session, parameter.name)
        if not points_to_const(parameter.type):
            if not buffer.array.flags.writeable:
                raise UsageError(
                    f"{self.name}: argument {parameter.name} is not const in C, and its array is "
                    "read-only: pass a copy"
                )
            changed[id(buffer)] = buffer
        return buffer

    def _run(self, arguments: Sequence[Any]) -> Value:
        call, stop = self.function.run(*arguments)
        cost = Cost.of([stop])
        if stop.phases:
            inside = stop.phases[1]
            cost = Cost(inside.instructions, inside.cycles, cost.seconds, cost.sources)
        self._latest = cost
        self.calls += 1
        return call.result()

    def __repr__(self) -> str:
        return f"<Kernel {self.signature}>"
