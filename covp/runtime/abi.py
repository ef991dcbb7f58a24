"""Arguments as the target's calling convention wants them.

A task carries the words that fill the integer argument registers and then the stack, and the
single-precision values that fill the floating-point ones. The rules are those of the Procedure
Call Standard for the Arm Architecture (base and VFP variant), of the RISC-V calling convention
(ilp32, ilp32f) and of the System V ABI's AMD64 supplement (x32), for scalars: nothing is passed by
value in pieces but 64-bit integers, and on x86 these neither: a bit says which two words are one.
"""

from __future__ import annotations

import numbers
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from covp.cores import Core
from covp.errors import UsageError
from covp.runtime.signature import CType, Signature

WORDS = 12
FLOATS = 8
RESULT_FLOAT = 1
WIDE = 1 << 8  # TASK_CODES_WIDE of device_runtime/task_layout.h
TASK_BYTES = 96
_TASK = struct.Struct("<4I12I8f")
_RISCV_REGISTERS = 8


@runtime_checkable
class Addressed(Protocol):
    """Something in the target's memory that can be passed as a pointer."""

    @property
    def address(self) -> int:
        """Of its first byte."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""
        ...


@dataclass(frozen=True)
class Task:
    """One call, ready for the queue.

    Attributes:
        function: address with the Thumb bit.
        codes: `RESULT_FLOAT` where the result is in a floating-point register; on x86 also
            `WIDE` << i where words i and i + 1 are one argument.
        words, floats: the arguments.
    """

    function: int
    codes: int = 0
    words: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()

    def pack(self) -> bytes:
        """``struct covp_task`` of device_runtime/task.h, little-endian."""
        words = self.words + (0,) * (WORDS - len(self.words))
        floats = self.floats + (0.0,) * (FLOATS - len(self.floats))
        return _TASK.pack(self.function, self.codes, 0, 0, *words, *floats)


class _Layout:
    """Arguments as they fill registers and stack, one after the other."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.words: list[int] = []
        self.floats: list[float] = []
        self.codes = 0

    def add(self, value: int | float, size: int) -> None:
        """The next argument: a float32 value, or an integer of ``size`` bytes."""
        if isinstance(value, float):
            if self.core.has("fpu"):
                self.floats.append(value)
            else:
                self.words.append(int.from_bytes(struct.pack("<f", value), "little"))
        elif size == 8:
            self._add_pair(value)
        else:
            self.words.append(value & 0xFFFFFFFF)

    def _add_pair(self, value: int) -> None:
        if _pair_is_aligned(self.core, len(self.words)):
            self.words.append(0)
        if self.core.architecture == "x86":
            self.codes |= WIDE << len(self.words)
        self.words += [value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF]

    def task(self, address: int, what: str, codes: int = 0) -> Task:
        """The call of a function. Raises UsageError: there are too many arguments."""
        if len(self.words) > WORDS or len(self.floats) > FLOATS:
            raise UsageError(
                f"{what} needs {len(self.words)} argument words and {len(self.floats)} floats in "
                f"registers; at most {WORDS} and {FLOATS} can be passed: pass a pointer to a "
                "tensor instead"
            )
        return Task(address, self.codes | codes, tuple(self.words), tuple(self.floats))


def make_task(core: Core, address: int, signature: Signature, arguments: Sequence[Any]) -> Task:
    """Check the arguments against the signature and lay them out.

    Args:
        core: whose calling convention holds.
        address: of the function, with the Thumb bit.
        signature: the C declaration.
        arguments: integers, floats, and `Addressed` objects for pointers.

    Raises:
        UsageError: count, type or range is wrong, or the type cannot be passed.
    """
    if signature.variadic:
        raise UsageError(f"{signature}: functions with ... cannot be called")
    expected = len(signature.parameters)
    if len(arguments) != expected:
        plural = "s" if expected != 1 else ""
        raise UsageError(f"{signature} takes {expected} argument{plural}, not {len(arguments)}")
    _check_result(signature)
    layout = _Layout(core)
    for parameter, argument in zip(signature.parameters, arguments, strict=True):
        where = f"{signature.name}: argument {parameter.name or len(layout.words)}"
        layout.add(encode(parameter.type, argument, where), parameter.type.bytes)
    float_result = core.has("fpu") and signature.result.kind == "float"
    return layout.task(address, str(signature), RESULT_FLOAT if float_result else 0)


def untyped_task(core: Core, address: int, arguments: Sequence[int | float], what: str) -> Task:
    """The call of an address of which no declaration is known.

    Args:
        core: whose calling convention holds.
        address: of the function, with the Thumb bit.
        arguments: in C order; an int is a word of 32 bits (two's complement or an address), a
            float is a float32.
        what: names the function in errors.

    Raises:
        UsageError: there are too many.
    """
    layout = _Layout(core)
    for argument in arguments:
        layout.add(argument, 4)
    return layout.task(address, what)


def _pair_is_aligned(core: Core, position: int) -> bool:
    """True where a 64-bit argument leaves a word out at an odd position.

    Arm: always, registers and stack. RISC-V: on the stack only; one in the last register is split.
    x86: never.
    """
    if position % 2 == 0 or core.architecture == "x86":
        return False
    return core.architecture == "arm" or position >= _RISCV_REGISTERS


def _check_result(signature: Signature) -> None:
    result = signature.result
    if result.kind == "other" or (result.kind == "float" and result.bytes != 4):
        raise UsageError(f"{signature}: cannot return {result.name}; write it through a pointer")


def encode(kind: CType, argument: Any, where: str) -> int | float:
    """One argument as an integer (two's complement, pointers as addresses) or as a float32 value.

    Raises:
        UsageError: it does not fit the type.
    """
    if kind.kind == "int":
        return _encode_int(kind, argument, where)
    if kind.kind == "float":
        if kind.bytes != 4:
            raise UsageError(f"{where}: {kind.name} is not supported; declare it float")
        if not isinstance(argument, numbers.Real):
            raise UsageError(f"{where}: {kind.name} needs a number, not {_kind_of(argument)}")
        with np.errstate(over="ignore"):
            return float(np.float32(argument))
    if kind.kind == "pointer":
        return _encode_pointer(kind, argument, where)
    raise UsageError(f"{where}: {kind.name} cannot be passed by value; pass a pointer")


def _encode_int(kind: CType, argument: Any, where: str) -> int:
    if not isinstance(argument, (numbers.Integral, np.bool_)):
        raise UsageError(f"{where}: {kind.name} needs an integer, not {_kind_of(argument)}")
    value = int(argument)
    bits = 8 * kind.bytes
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.signed else (0, (1 << bits) - 1)
    if kind.name.endswith("_Bool"):
        high = 1
    if not low <= value <= high:
        raise UsageError(f"{where}: {value} is outside {kind.name} ({low} to {high})")
    return value


def _encode_pointer(kind: CType, argument: Any, where: str) -> int:
    if argument is None:
        return 0
    if isinstance(argument, numbers.Integral) and not isinstance(argument, bool):
        address = int(argument)
        if not 0 <= address <= 0xFFFFFFFF:
            raise UsageError(f"{where}: 0x{address:x} is not a 32-bit address")
        return address
    if isinstance(argument, Addressed):
        _check_pointee(kind, argument, where)
        return argument.address
    hint = "; make it session.tensor(...)" if isinstance(argument, np.ndarray) else ""
    raise UsageError(f"{where}: {kind.name} needs a tensor, not {_kind_of(argument)}{hint}")


def _check_pointee(kind: CType, tensor: Addressed, where: str) -> None:
    pointee = kind.pointee
    while pointee is not None and pointee.kind == "other" and pointee.pointee is not None:
        pointee = pointee.pointee  # a pointer to an array: its elements
    if pointee is None or pointee.kind in ("void", "other"):
        return
    dtype = tensor.dtype
    if pointee.kind == "int":
        kinds = "ib" if pointee.signed else "ub"
        # char has no fixed sign; a byte is a byte
        fits = dtype.kind in (kinds if pointee.bytes > 1 or "char" not in pointee.name else "iub")
    elif pointee.kind == "pointer":
        fits = dtype.kind in "iu"
    else:
        fits = dtype.kind == "f"
    if not fits or dtype.itemsize != pointee.bytes:
        raise UsageError(f"{where}: {kind.name} does not fit a tensor of {dtype.name}")


def _kind_of(argument: Any) -> str:
    return f"a {type(argument).__name__}"


def decode_result(kind: CType, low: int, high: int) -> int | float | bool | None:
    """The value a function left in its result registers, as a Python number; None for void."""
    if kind.kind == "void":
        return None
    raw = struct.pack("<II", low, high)
    if kind.kind == "float":
        return float(struct.unpack("<f", raw[:4])[0])
    value = int.from_bytes(raw[: kind.bytes], "little", signed=kind.signed)
    return bool(value) if kind.name.endswith("_Bool") else value
