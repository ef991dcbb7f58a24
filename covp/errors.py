"""The exceptions of covp.

::

    CovpError                 an error that a user can fix; one line: what, where, how to fix
    ├── UsageError            the call itself is wrong (command line exit status 2)
    ├── ModelError            a model file cannot be read or uses something unsupported
    ├── PlatformError         a platform file is wrong or names what does not exist
    │   └── UnknownPlatform   no platform of that name; a UsageError too
    ├── ToolchainError        a C compiler failed or is missing
    ├── CapacityError         a program, tensor or stack does not fit the memory
    ├── AcceleratorError      a backend or peripheral broke its contract
    ├── WrongResult           a layer ran and its outputs, or the memory around them, are wrong
    ├── KernelError           a test of a kernel has found a mistake in it
    └── DeviceError           the way to the core failed (transport, emulator, closed session)
        └── DeviceFault       the program on the core did something the hardware forbids
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, Unpack


class Subject(TypedDict, total=False):
    """What an error is about, for programs that handle it; the text says it too.

    Attributes:
        key: of a file, such as "memory[0].size".
        operator, tensor: of a model, by name.
        address: of memory or of an instruction's access.
        length: bytes from ``address``.
        needed, available: bytes.
    """

    key: str
    operator: str
    tensor: str
    address: int
    length: int
    needed: int
    available: int


class CovpError(Exception):
    """Base of all errors that covp raises on purpose; the text is one line.

    The text is the message, with ``where`` before it and ``hint`` behind it.

    Attributes:
        subject: what it is about, as far as that is known.
    """

    exit_status = 1
    subject: Subject
    _where: str | None = None
    _hint: str | None = None

    def __init__(
        self,
        *arguments: object,
        where: object = None,
        hint: str | None = None,
        **subject: Unpack[Subject],
    ) -> None:
        """Take what the text is made of.

        Args:
            arguments: the message, or what a class with a text of its own is made with.
            where: the file or key; the text begins with it and a colon.
            hint: what would fix it. The text ends with it, after a semicolon, or after the colon
                that the message ends with.
            subject: what it is about.
        """
        self._where = None if where is None else str(where)
        self._hint = hint
        self.subject = subject
        if arguments and isinstance(arguments[0], str):
            message = arguments[0] if where is None else f"{where}: {arguments[0]}"
            if hint is not None:
                message += f"{'' if message.endswith(':') else ';'} {hint}"
            arguments = (message, *arguments[1:])
        super().__init__(*arguments)

    @property
    def where(self) -> str | None:
        """The file, key or code address that it is about; None where that is not stated apart."""
        return self._where

    @property
    def hint(self) -> str | None:
        """What would fix it; None where that is not stated apart."""
        return self._hint

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_error, (type(self), self.args, vars(self))


def _restore_error(
    kind: type[CovpError], arguments: tuple[Any, ...], state: dict[str, Any]
) -> CovpError:
    """Return an error out of another process, whatever its class is made with."""
    error = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


class UsageError(CovpError):
    """The call is wrong: an unknown name, a bad option, a wrong argument shape."""

    exit_status = 2


class ModelError(CovpError):
    """A model file is corrupt, truncated or uses an unsupported feature."""


class PlatformError(CovpError):
    """A platform file is wrong; the text names the key and the reason."""


class UnknownPlatform(UsageError, PlatformError):
    """No platform has that name."""


class ToolchainError(CovpError):
    """The compiler or linker failed; the text carries its first error with file and line."""


class CapacityError(CovpError):
    """Something does not fit.

    Attributes:
        needed: bytes in one piece.
        available: bytes of the largest free piece.
        kind: of the memory that is too small, "flash" or "ram"; None where it is no region.
        sections: of an image, name to bytes; empty for anything else.
    """

    def __init__(
        self,
        message: str,
        needed: int,
        available: int,
        kind: Literal["flash", "ram"] | None = None,
        sections: Mapping[str, int] | None = None,
        *,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, needed=needed, available=available)
        self.needed = needed
        self.available = available
        self.kind = kind
        self.sections = dict(sections or {})


class AcceleratorError(CovpError):
    """An accelerator's backend, driver or model broke its contract."""


class WrongResult(CovpError):
    """A layer ran to its end, and its outputs or the memory around them are wrong."""


class KernelError(CovpError):
    """A test of a kernel (`covp.testing`) has found a mistake in it."""


class DeviceError(CovpError):
    """The way to the core failed; not the program's fault."""


class ProgramExit(DeviceError):
    """The program ended itself, by a semihosting call.

    Attributes:
        status: 0 for success, as of a process.
        reason: the specification's name of the reason, e.g. "application exit".
        pc: address of the call; None where it is not known.
    """

    def __init__(self, status: int, reason: str, pc: int | None = None) -> None:
        self.status, self.reason, self.pc = status, reason, pc
        super().__init__(status, reason)

    def __str__(self) -> str:
        at = "" if self.pc is None else f" at pc 0x{self.pc:08x}"
        return f"the program ended with status {self.status} ({self.reason}){at}"


FaultKind = Literal[
    "unmapped read",
    "unmapped write",
    "unmapped fetch",
    "unmapped access",
    "write to read-only memory",
    "misaligned access",
    "stack overflow",
    "register access",
    "illegal instruction",
    "division by zero",
    "breakpoint",
    "unhandled exception",
    "hard fault",
    "general protection",
    "bus error",
    "unhandled signal",
    "timeout",
    "endless sleep",
    "endless poll",
    "unexpected halt",
    "emulator stop",
    "peripheral error",
    "undefined behaviour",
    "out-of-bounds read",
    "out-of-bounds write",
    "use after free",
    "use after return",
    "write to const",
    "store to code",
    "uninitialised read",
    "unwritten output",
    "stack limit",
]
"""The short names of faults."""


_CALLERS = 4
"""Callers that the text of a fault names."""


class DeviceFault(DeviceError):
    """The program on the core did something that the hardware forbids.

    Attributes:
        kind: one of `FaultKind`.
        pc: address of the faulting instruction; None where it is not known.
        address: address of the access, of its first byte in a page that there is not where it
            crosses into one; or None where there is none.
        size: bytes of the access, or None.
        symbol: "function+0x12" of the pc, or None.
        source: "file.c:12" of the pc, or None.
        registers: register name to value at the fault.
        call_stack: "function (file.c:12)" of the active functions, innermost first, inlined ones
            included; () where it is not known.
    """

    def __init__(
        self,
        kind: FaultKind,
        *,
        pc: int | None = None,
        address: int | None = None,
        size: int | None = None,
        detail: str = "",
        symbol: str | None = None,
        source: str | None = None,
        registers: Mapping[str, int] | None = None,
        call_stack: tuple[str, ...] = (),
    ) -> None:
        self.kind: FaultKind = kind
        self.pc = pc
        self.address = address
        self.size = size
        self.detail = detail
        self.symbol = symbol
        self.source = source
        self.registers = dict(registers or {})
        self.call_stack = call_stack
        super().__init__(kind)
        if address is not None:
            self.subject["address"] = address
        if size is not None:
            self.subject["length"] = size

    @property
    def where(self) -> str | None:
        """The source line of the instruction, else its function, else its address."""
        pc = None if self.pc is None else f"0x{self.pc:08x}"
        return self.source or self.symbol or pc

    def __str__(self) -> str:
        text: str = self.kind
        if self.address is not None:
            text += f" at address 0x{self.address:08x}"
            if self.size is not None:
                text += f" ({self.size} byte{'s' if self.size != 1 else ''})"
        if self.pc is not None:
            text += f", pc 0x{self.pc:08x}"
        if self.symbol:
            text += f" in {self.symbol}"
        if self.source:
            text += f" ({self.source})"
        if self.detail:
            text += f": {self.detail}"
        callers = self.call_stack[1 : 1 + _CALLERS]
        if callers:
            more = ", ..." if len(self.call_stack) > 1 + _CALLERS else ""
            text += f"; called by {', '.join(callers)}{more}"
        return text


def printable(text: str | bytes) -> str:
    """Return a name out of a file, which stays on one line of messages and tables."""
    decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in decoded)


def near_misses(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: near misses among the ``known`` ones, else all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known are {', '.join(names)}" if names else "there is none"
