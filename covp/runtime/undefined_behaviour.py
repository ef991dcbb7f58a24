"""Findings of the compiler's undefined-behaviour checks, out of what they hand to their handlers.

A check that fails calls ``__ubsan_handle_...`` with the address of constant data (the place in the
source, the types) and the operands. covp's handlers (device_runtime/ubsan.S) end the run with the
arguments on the stack, on every device alike.

Sources: compiler-rt, lib/ubsan/ubsan_handlers.h and ubsan_value.h, which GCC's libsanitizer shares.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath

from covp.device.base import LowLevelDevice
from covp.errors import DeviceError, DeviceFault

HANDLER = "__ubsan_handle_"
_INTEGER, _FLOAT, _BIT_INT = 0, 1, 2
_LONGEST_NAME = 256


@dataclass(frozen=True)
class _Type:
    """A TypeDescriptor: ``name`` as in the source; ``kind`` and ``info`` say its size."""

    name: str
    kind: int
    info: int

    @property
    def bits(self) -> int:
        return self.info if self.kind == _FLOAT else 1 << (self.info >> 1)

    @property
    def is_signed(self) -> bool:
        return self.kind in (_INTEGER, _BIT_INT) and bool(self.info & 1)


class _Call:
    """A handler's arguments; ``read`` is the device's.

    Attributes:
        values: the operands' words, the address of the data left out.
    """

    def __init__(self, read: Callable[[int, int], bytes], sp: int) -> None:
        self._read = read
        self._data, *self.values = struct.unpack("<4I", read(sp, 16))

    @property
    def source(self) -> str | None:
        """ "file.c:12"; None where the compiler did not know."""
        name, line = self.word(0), self.word(1)
        return f"{PurePath(self._text(name)).name}:{line}" if name and line else None

    def word(self, position: int) -> int:
        """Return a word of the data; file, line and column are the first three."""
        return int.from_bytes(self._read(self._data + 4 * position, 4), "little")

    def type(self, position: int) -> _Type:
        """Return the type whose descriptor's address is a word of the data."""
        address = self.word(position)
        kind, info = struct.unpack("<HH", self._read(address, 4))
        # "'int [4]'", "'int32_t' (aka 'int')"
        name = self._text(address + 4).removeprefix("'").partition("'")[0]
        return _Type(name.replace(" [", "["), kind, info)

    def value(self, type_: _Type, word: int) -> int | float | None:
        """Return an operand: ``word`` itself, or what it points to if it does not fit a word."""
        size = type_.bits // 8
        if type_.kind not in (_INTEGER, _FLOAT, _BIT_INT) or size > 16:
            return None
        raw = word.to_bytes(4, "little")[: max(size, 1)] if size <= 4 else self._read(word, size)
        if type_.kind == _FLOAT:
            form = {2: "<e", 4: "<f", 8: "<d"}.get(size)
            return float(struct.unpack(form, raw)[0]) if form else None
        return int.from_bytes(raw, "little", signed=type_.is_signed)

    def shown(self, type_: _Type, word: int) -> str:
        """Format an operand as text."""
        value = self.value(type_, word)
        return "?" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    def _text(self, address: int) -> str:
        found = bytearray()
        while len(found) < _LONGEST_NAME and not found.endswith(b"\0"):
            found += self._read(address + len(found), 1)
        return found.rstrip(b"\0").decode("utf-8", "replace")


def as_finding(fault: DeviceFault, device: LowLevelDevice) -> DeviceFault:
    """Turn a fault in a handler into the undefined behaviour of its caller.

    Args:
        fault: changed in place.
        device: halted where the fault left it.
    """
    name = (fault.symbol or "").partition("+")[0]
    if not name.startswith(HANDLER):
        return fault
    name = name.removeprefix(HANDLER).removesuffix("_abort")
    detail, source, address = _KINDS.get(name, name.replace("_", " ")), None, None
    if name not in _WITHOUT_DATA:
        with suppress(DeviceError):  # a stack that was written over
            call = _Call(device.read, fault.registers.get("sp", fault.registers.get("rsp", 0)))
            source = call.source
            address = call.values[0] if name in _ABOUT_AN_ADDRESS else None
            detail = _DETAILS[name](call) if name in _DETAILS else detail
    fault.kind, fault.detail = "undefined behaviour", detail
    fault.address, fault.size = address, None
    fault.call_stack = fault.call_stack[1:]
    _place(fault, device, source)
    return fault


def _place(fault: DeviceFault, device: LowLevelDevice, source: str | None) -> None:
    """Put a finding where its check is, instead of in the handler."""
    names, found = device.abilities.names, None
    with suppress(DeviceError):
        fault.pc = _find_call(fault.registers, device.read)
        if names is not None:
            fault.symbol, found = names.symbols.locate(fault.pc)
    fault.source = source or found


def _find_call(registers: Mapping[str, int], read: Callable[[int, int], bytes]) -> int:
    """Return the address of the call that a handler was entered by."""
    if "rsp" in registers:
        return int.from_bytes(read(registers["rsp"] + 16, 8), "little") - 5
    if "lr" in registers:
        return (registers["lr"] & ~1) - 4
    link = registers["ra"]
    return link - (4 if read(link - 4, 1)[0] & 3 == 3 else 2)


def _arithmetic(sign: str) -> Callable[[_Call], str]:
    def detail(call: _Call) -> str:
        type_ = call.type(3)
        left, right = (call.shown(type_, word) for word in call.values[:2])
        return f"{_kind(type_)} integer overflow: {left} {sign} {right} does not fit {type_.name}"

    return detail


def _kind(type_: _Type) -> str:
    return "signed" if type_.is_signed else "unsigned"


def _division(call: _Call) -> str:
    type_ = call.type(3)
    left, right = (call.value(type_, word) for word in call.values[:2])
    return f"division by zero: {left} / 0" if right == 0 else _arithmetic("/")(call)


def _negation(call: _Call) -> str:
    type_ = call.type(3)
    value = call.shown(type_, call.values[0])
    return f"{_kind(type_)} integer overflow: -({value}) does not fit {type_.name}"


def _shift(call: _Call) -> str:
    left_type, right_type = call.type(3), call.type(4)
    left, right = call.value(left_type, call.values[0]), call.value(right_type, call.values[1])
    name = left_type.name
    if not isinstance(left, int) or not isinstance(right, int):
        return f"shift of {name} by a count out of range"
    if not 0 <= right < left_type.bits:
        why = "the count is negative" if right < 0 else f"{name} has {left_type.bits} bits"
        return f"shift by {right}: {why}"
    why = "the value is negative" if left < 0 else f"the result does not fit {name}"
    return f"left shift of {left} by {right}: {why}"


def _index(call: _Call) -> str:
    index = call.shown(call.type(4), call.values[0])
    return f"index {index} is outside {call.type(3).name}"


# TypeCheckKind of clang, lib/CodeGen/CodeGenFunction.h
_ACCESSES = ("load of", "store to", "reference to", "access to a member of")


def _access(call: _Call) -> str:
    alignment, kind = call.word(4) & 0xFF, call.word(4) >> 8 & 0xFF
    access = _ACCESSES[kind] if kind < len(_ACCESSES) else "use of"
    pointer, name = call.values[0], call.type(3).name
    if pointer == 0:
        return f"{access} {name} through a null pointer"
    if pointer % (1 << alignment):
        return f"{access} {name} at a misaligned address: it needs a multiple of {1 << alignment}"
    return f"{access} {name} where the object has not enough bytes left"


def _assumption(call: _Call) -> str:
    pointer, alignment = call.values[:2]
    return f"the assumed alignment of {alignment} bytes does not hold for 0x{pointer:08x}"


def _pointer(call: _Call) -> str:
    base, result = call.values[:2]
    if base == 0 or result == 0:
        return f"pointer arithmetic with a null pointer: 0x{base:08x} became 0x{result:08x}"
    return f"pointer arithmetic overflows: 0x{base:08x} became 0x{result:08x}"


def _float_cast(call: _Call) -> str:
    value = call.value(call.type(3), call.values[0])
    shown = f"{value:.9g}" if isinstance(value, float) and math.isfinite(value) else str(value)
    return f"conversion to {call.type(4).name}: {shown} does not fit"


def _invalid_value(call: _Call) -> str:
    type_ = call.type(3)
    return f"load of {call.shown(type_, call.values[0])}, which is not a value of {type_.name}"


def _conversion(call: _Call) -> str:
    before, after = call.type(3), call.type(4)
    value = call.shown(before, call.values[0])
    result = call.shown(after, call.values[1])
    return f"conversion of {value} from {before.name} to {after.name} gives {result}"


def _builtin(call: _Call) -> str:
    what = {0: "ctz of 0", 1: "clz of 0"}.get(call.word(3) & 0xFF, "a wrong assumption")
    return f"builtin function: {what}"


def _bound(call: _Call) -> str:
    return f"array of {call.shown(call.type(3), call.values[0])} elements"


def _null_argument(call: _Call) -> str:
    return f"argument {call.word(6)} is null and must not be"


_DETAILS: dict[str, Callable[[_Call], str]] = {
    "add_overflow": _arithmetic("+"),
    "sub_overflow": _arithmetic("-"),
    "mul_overflow": _arithmetic("*"),
    "divrem_overflow": _division,
    "negate_overflow": _negation,
    "shift_out_of_bounds": _shift,
    "out_of_bounds": _index,
    "type_mismatch_v1": _access,
    "alignment_assumption": _assumption,
    "pointer_overflow": _pointer,
    "float_cast_overflow": _float_cast,
    "load_invalid_value": _invalid_value,
    "implicit_conversion": _conversion,
    "invalid_builtin": _builtin,
    "vla_bound_not_positive": _bound,
    "nonnull_arg": _null_argument,
}
_KINDS = {
    "local_out_of_bounds": "access outside a variable of known size",
    "builtin_unreachable": "code that cannot be reached",
    "missing_return": "the function ends without a value",
    "nonnull_return_v1": "a null pointer is returned where none may be",
    "function_type_mismatch": "call through a pointer to another type of function",
}
_WITHOUT_DATA = ("local_out_of_bounds",)
_ABOUT_AN_ADDRESS = ("type_mismatch_v1", "alignment_assumption")
