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
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from covp.chip.cores import Core
from covp.chip.isa.riscv import RISCV
from covp.errors import UsageError
from covp.runtime.signature import CType, Signature

WORDS = 12
FLOATS = 8
RESULT_FLOAT = 1
WIDE = 1 << 8  # TASK_CODES_WIDE of device_runtime/task_layout.h
TASK_BYTES = 96
_TASK = struct.Struct("<4I12I8f")
_ADDRESSED: set[type] = set()
"""Types whose objects are `Addressed`, which takes long to find out."""


@runtime_checkable
class Addressed(Protocol):
    """Something in the target's memory that can be passed as a pointer."""

    @property
    def pointer(self) -> int:
        """The address of its first byte, to be passed to a function."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its elements."""
        ...


def words_of(task: bytes) -> tuple[int, ...]:
    """Return the words in the integer argument registers and on the stack; unused ones are 0."""
    return tuple(_TASK.unpack(task)[4 : 4 + WORDS])


class _Layout:
    """Arguments as they fill registers and stack, one after the other.

    A slot is a format of `struct`, 4 or 8 bytes with what fills it up.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self.slots: list[str] = []
        self.places: list[int] = []
        """For each of the arguments in ``slots`` its place among all."""
        self.floats: list[int] = []
        """The places of those in floating-point registers."""
        self.codes = 0
        self.words = 0
        self._count = 0

    def add(self, code: str) -> None:
        """Add the next argument; ``code`` is its format: f, or an integer of 4 or 8 bytes."""
        place, self._count = self._count, self._count + 1
        if code == "f" and self.core.has("fpu"):
            self.floats.append(place)
            return
        if code in "qQ":
            if _pair_is_aligned(self.core, self.words):
                self.slots.append("4x")
                self.words += 1
            if self.core.architecture == "x86":
                self.codes |= WIDE << self.words
            self.words += 1
        self.words += 1
        self.slots.append(code)
        self.places.append(place)

    def format(self, what: str) -> struct.Struct:
        """Return the format of ``struct covp_task`` of device_runtime/task.h, little-endian.

        Raises:
            UsageError: there are too many arguments.
        """
        words, floats = self.words, len(self.floats)
        if words > WORDS or floats > FLOATS:
            raise UsageError(
                f"{what} needs {words} argument words and {floats} floats in registers; at most "
                f"{WORDS} and {FLOATS} can be passed: pass a pointer to a tensor instead"
            )
        spare = f"{4 * (WORDS - words)}x{floats}f{4 * (FLOATS - floats)}x"
        return struct.Struct(f"<2I8x{''.join(self.slots)}{spare}")


class CallFormat:
    """The calls of one function: what its arguments are, and where they go, worked out once.

    Args:
        core: whose calling convention holds.
        address: of the function, with the Thumb bit.
        signature: the C declaration.

    Raises:
        UsageError: it cannot be called.
    """

    def __init__(self, core: Core, address: int, signature: Signature) -> None:
        if signature.variadic:
            raise UsageError(f"{signature}: functions with ... cannot be called")
        _check_result(signature)
        self._signature = signature
        layout = _Layout(core)
        self._encoders = []
        for parameter in signature.parameters:
            where = f"{signature.name}: argument {parameter.name or layout.words}"
            self._encoders.append(_encoder(parameter.type, where))
            layout.add(_code(parameter.type))
        self._struct = layout.format(str(signature))
        self._order = [*layout.places, *layout.floats]
        float_result = core.has("fpu") and signature.result.kind == "float"
        self._head = (address, layout.codes | (RESULT_FLOAT if float_result else 0))

    def pack(self, arguments: Sequence[Any]) -> bytes:
        """Check the arguments against the signature and lay them out as a task.

        Args:
            arguments: integers, floats, and `Addressed` objects for pointers.

        Raises:
            UsageError: count, type or range is wrong, or the type cannot be passed.
        """
        encoders = self._encoders
        if len(arguments) != len(encoders):
            plural = "s" if len(encoders) != 1 else ""
            raise UsageError(
                f"{self._signature} takes {len(encoders)} argument{plural}, not {len(arguments)}"
            )
        values = [encode(one) for encode, one in zip(encoders, arguments, strict=True)]
        return self._struct.pack(*self._head, *[values[place] for place in self._order])


def untyped_task(core: Core, address: int, arguments: Sequence[int | float], what: str) -> bytes:
    """Return the call of an address of which no declaration is known.

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
        layout.add("f" if isinstance(argument, float) else "I")
    values = [one if isinstance(one, float) else one & 0xFFFFFFFF for one in arguments]
    order = [*layout.places, *layout.floats]
    return layout.format(what).pack(address, layout.codes, *[values[place] for place in order])


def word_task(address: int, words: Sequence[int]) -> bytes:
    """Return the call of an address with ``words``, which every calling convention takes alike."""
    return _TASK.pack(address, 0, 0, 0, *words, *[0] * (WORDS - len(words)), *[0.0] * FLOATS)


def _pair_is_aligned(core: Core, position: int) -> bool:
    """Return whether a 64-bit argument leaves a word out at an odd position.

    Arm: always, registers and stack. RISC-V: on the stack only; one in the last register is split.
    x86: never.
    """
    if position % 2 == 0 or core.architecture == "x86":
        return False
    return core.architecture == "arm" or position >= len(RISCV.arguments)


def _check_result(signature: Signature) -> None:
    result = signature.result
    if result.kind == "other" or (result.kind == "float" and result.bytes != 4):
        raise UsageError(f"{signature}: cannot return {result.name}; write it through a pointer")


def _code(kind: CType) -> str:
    """Return the format of `struct` of a parameter in a task."""
    if kind.kind == "float":
        return "f"
    if kind.kind == "int" and kind.signed:
        return "q" if kind.bytes == 8 else "i"
    return "Q" if kind.kind == "int" and kind.bytes == 8 else "I"


def _encoder(kind: CType, where: str) -> Callable[[Any], int | float]:
    """Return `encode` for one parameter; the most frequent cases are decided at once."""
    if kind.kind == "int" and not kind.name.endswith("_Bool"):
        low, high = _range(kind)

        def encode_int(argument: Any) -> int | float:
            if type(argument) is int and low <= argument <= high:
                return argument
            return encode(kind, argument, where)

        return encode_int
    if kind.kind == "pointer":
        fitting: set[np.dtype[Any]] = set()

        def encode_pointer(argument: Any) -> int | float:
            if type(argument) in _ADDRESSED:
                if argument.dtype not in fitting:
                    _check_pointee(kind, argument, where)
                    fitting.add(argument.dtype)
                return int(argument.pointer)
            return encode(kind, argument, where)

        return encode_pointer
    return lambda argument: encode(kind, argument, where)


def _range(kind: CType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    bits = 8 * kind.bytes
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.signed else (0, (1 << bits) - 1)


def encode(kind: CType, argument: Any, where: str) -> int | float:
    """Encode one argument as an integer (two's complement, an address) or a float32 value.

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
    low, high = _range(kind)
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
        _ADDRESSED.add(type(argument))
        _check_pointee(kind, argument, where)
        return argument.pointer
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
    """Decode a function's result registers as a Python number; None for void."""
    if kind.kind == "void":
        return None
    raw = struct.pack("<II", low, high)
    if kind.kind == "float":
        return float(struct.unpack("<f", raw[:4])[0])
    value = int.from_bytes(raw[: kind.bytes], "little", signed=kind.signed)
    return bool(value) if kind.name.endswith("_Bool") else value
