"""`Kernel`: a C function on a device that takes numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covp.base.arguments import demand
from covp.device.stop import Stop
from covp.errors import UsageError
from covp.laboratory.buffers import Buffer, CallMemory
from covp.laboratory.c_structs import read_layout
from covp.laboratory.structs import Struct
from covp.runtime.allocator import Block
from covp.runtime.module import Function
from covp.runtime.profile import Cost
from covp.runtime.resident import Resident
from covp.runtime.sanitizer import points_to_const
from covp.runtime.signature import Signature

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
        self._latest: Stop | None = None
        self.calls = 0
        self._memory = CallMemory(self.session)
        self._pointers = [
            (place, (parameter.name, points_to_const(parameter.type)))
            for place, parameter in enumerate(self.signature.parameters)
            if parameter.type.kind == "pointer"
        ]

    @property
    def session(self) -> Resident:
        """The session that the kernel runs in."""
        return self.function.module.session

    @property
    def signature(self) -> Signature:
        """C declaration of the function."""
        return self.function.signature

    @property
    def name(self) -> str:
        """Name of the function in C."""
        return self.signature.name

    @property
    def address(self) -> int:
        """The address of the function's first instruction."""
        return self.function.address

    @property
    def code_bytes(self) -> int:
        """The bytes of the function's machine code, without functions that it calls."""
        return self.function.module.image.elf.symbols[self.name].size

    @property
    def latest(self) -> Cost:
        """The cost of the latest call, of the function alone where the device counts by phase.

        Raises:
            UsageError: it was not called yet.
        """
        if self._latest is None:
            raise UsageError(f"{self.name} was not called yet: it has no cost")
        cost = Cost.of([self._latest])
        if not self._latest.phases:
            return cost
        inside = self._latest.phases[1]
        return Cost(inside.instructions, inside.cycles, cost.seconds, cost.sources)

    @property
    def stack_bytes(self) -> int:
        """An upper bound of the stack bytes that the latest call used.

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
                are passed where they are. The same array twice is one piece of memory. Where C
                has a pointer to a structure, a dictionary of its members is passed (`Struct`).

        Returns:
            the function's result.

        Raises:
            UsageError: the arguments do not fit the C declaration.
            CapacityError: they do not fit the RAM.
            DeviceFault: the function faulted; arrays are as before the call.
        """
        session = self.function.module.session
        with session.in_use:
            session.check_open()
            passed, buffers, changed = self._sort_arguments(arguments)
            if not buffers:
                return self._run(passed, None)
            try:
                result = self._run(passed, self._memory.place(buffers))
                for buffer in changed:
                    buffer.fetch(session)
            finally:
                self._memory.release(buffers)
        return result

    def _sort_arguments(
        self, arguments: Sequence[Any]
    ) -> tuple[list[Any], list[Buffer], list[Buffer]]:
        """Return arguments as the function takes them, its buffers, and those it may change."""
        expected = self.signature.parameters
        if len(arguments) != len(expected):
            plural = "s" if len(expected) != 1 else ""
            raise UsageError(
                f"{self.signature} takes {len(expected)} argument{plural}, not {len(arguments)}"
            )
        passed, changed = list(arguments), list[Buffer]()
        buffers: dict[object, Buffer] = {}
        # arrays that own their memory are distinct by identity
        plain = all(type(one) not in (Buffer, dict) and _owns_memory(one) for one in arguments)
        for place, (name, is_const) in self._pointers:
            argument = passed[place]
            if isinstance(argument, np.ndarray):
                argument = Buffer.of(argument, name)
            elif isinstance(argument, dict):
                argument = self._struct(place, argument)
            elif not isinstance(argument, Buffer):
                continue
            key = id(argument.array) if plain else argument.key
            passed[place] = buffer = buffers.setdefault(key, argument)
            if not is_const and buffer not in changed:
                self._check_writable(buffer, name)
                changed.append(buffer)
            if isinstance(buffer, Struct):
                self._add_members(buffer, buffers, changed)
        return passed, list(buffers.values()), changed

    def _struct(self, place: int, values: dict[str, Any]) -> Struct:
        """Turn a dictionary into the structure that a parameter points to."""
        elf, parameter = self.function.module.image.elf.content, self.signature.parameters[place]
        pointee = parameter.type.pointee
        name = "" if pointee is None else pointee.name.split()[-1]
        return Struct(
            read_layout(elf, name), values, lambda of: read_layout(elf, of), parameter.name
        )

    def _add_members(
        self, struct: Struct, buffers: dict[object, Buffer], changed: list[Buffer]
    ) -> None:
        """Add what the pointers of a structure lead to, to be placed along with it."""
        struct.share(lambda one: buffers.setdefault(one.key, one))
        for member, is_const in struct.members:
            if not is_const and member not in changed:
                self._check_writable(member, member.name)
                changed.append(member)

    def _check_writable(self, buffer: Buffer, name: str) -> None:
        if not buffer.array.flags.writeable:
            raise UsageError(
                f"{self.name}: argument {name} is not const in C, and its array is read-only: "
                "pass a copy"
            )

    def _run(self, arguments: Sequence[Any], workspace: Block | None) -> Value:
        call, self._latest = self.function.run(*arguments, workspace=workspace)
        self.calls += 1
        return call.result()

    def __repr__(self) -> str:
        return f"<Kernel {self.signature}>"


def _owns_memory(argument: Any) -> bool:
    return not isinstance(argument, np.ndarray) or argument.base is None
