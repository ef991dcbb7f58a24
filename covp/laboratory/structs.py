"""`Struct`: a C structure as an argument of a kernel, from a dictionary of its members."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from covp.errors import UsageError, near_misses
from covp.laboratory.buffers import ALIGNMENT, Buffer
from covp.laboratory.c_structs import Member, MemberType, StructLayout
from covp.runtime.resident import Resident
from covp.runtime.tensor import DeviceTensor

_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}
_FLOATS = {2: "e", 4: "f", 8: "d"}


class Struct(Buffer):
    """A structure in the device's memory for a call; where C has a pointer to it, a dict will do.

    Members are numbers, dictionaries, lists, and for pointers arrays, `Buffer`, tensors of the
    session, dictionaries again or None. Those that are left out are 0, as in C. What is behind a
    pointer to something not const is copied back into its array or dictionary after the call.

    Args:
        layout: of the structure.
        values: of its members by name.
        find: the layout of a structure of a name, for pointers to them.
        name: for messages.

    Raises:
        UsageError: a member does not exist or does not take its value.
    """

    def __init__(
        self,
        layout: StructLayout,
        values: dict[str, Any],
        find: Callable[[str], StructLayout],
        name: str = "",
    ) -> None:
        self.name, self.alignment, self.offset = name, ALIGNMENT, 0
        self.written, self.scratch = True, False
        self._address: int | None = None
        self.layout, self.values = layout, values
        self._pointers: dict[int, tuple[Buffer, bool]] = {}
        for offset, kind, what, value in _pointers(layout, values, name or layout.name):
            self._pointers[offset] = _as_buffer(kind, value, what, find), kind.const

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.layout.bytes

    @property
    def array(self) -> Any:  # type: ignore[override]
        """Bytes of the structure, with the present addresses of members."""
        raw = bytearray(self.layout.bytes)
        _pack(self.layout, self.values, raw, 0, self.name or self.layout.name)
        for offset, (buffer, _) in self._pointers.items():
            struct.pack_into("<I", raw, offset, buffer.address if buffer.is_placed else 0)
        return np.frombuffer(raw, np.uint8)

    @property
    def value_bytes(self) -> bytes:
        """Mask of the bytes of which `fetch` reads a member: 1 or 0 each."""
        found = bytearray(self.layout.bytes)
        _mark(self.layout, found, 0)
        return bytes(found)

    @property
    def key(self) -> tuple[int, int, int, int]:
        """A key that is equal for the same dictionary."""
        return id(self.values), -1, 0, 0

    @property
    def members(self) -> Iterator[tuple[Buffer, bool]]:
        """The buffers that the structure's pointers lead to, each with whether it is const."""
        for buffer, is_const in self._pointers.values():
            yield buffer, is_const
            if isinstance(buffer, Struct):
                yield from buffer.members

    def share(self, shared: Callable[[Buffer], Buffer]) -> None:
        """Replace each buffer of a pointer by the one that ``shared`` returns for its memory."""
        for offset, (buffer, is_const) in self._pointers.items():
            one = shared(buffer)
            self._pointers[offset] = one, is_const
            if isinstance(one, Struct):
                one.share(shared)

    def fetch(self, session: Resident) -> None:
        """Copy the members that are no pointers back into the dictionary."""
        _unpack(self.layout, self.values, session.io.read(self.address, self.nbytes), 0)

    def __repr__(self) -> str:
        return f"<Struct {self.layout.name}>"


def _as_buffer(
    kind: MemberType, value: Any, what: str, find: Callable[[str], StructLayout]
) -> Buffer:
    if isinstance(value, Buffer):
        value.name = value.name or what
        return value
    if isinstance(value, np.ndarray):
        return Buffer(value, what)
    if isinstance(value, dict) and kind.pointee:
        return Struct(find(kind.pointee), value, find, what)
    raise UsageError(f"{what} is a pointer: an array, a Buffer, a tensor or None is needed")


def _given_members(layout: StructLayout, values: Any, what: str) -> Iterator[tuple[Member, Any]]:
    """Yield the members that are given, with their values."""
    if not isinstance(values, dict):
        raise UsageError(f"{what} is a structure {layout.name}: a dictionary is needed")
    members = {member.name: member for member in layout.members}
    for name, value in values.items():
        if name not in members:
            raise UsageError(f"{what} has no member {name}:", hint=near_misses(str(name), members))
        yield members[name], value


def _pointers(
    layout: StructLayout, values: Any, what: str, base: int = 0
) -> Iterator[tuple[int, MemberType, str, Any]]:
    """Yield offset, type, name and value of the pointers to memory of the host."""
    for member, value in _given_members(layout, values, what):
        name, at, kind = f"{what}.{member.name}", base + member.offset, member.type
        if kind.kind == "struct" and kind.layout is not None:
            yield from _pointers(kind.layout, value, name, at)
        elif kind.kind == "pointer" and not _is_known(value):
            yield at, kind, name, value


def _is_known(value: Any) -> bool:
    """Return whether a pointer's number is known before the call."""
    return value is None or isinstance(value, (int, np.integer, DeviceTensor))


def _pack(layout: StructLayout, values: Any, raw: bytearray, base: int, what: str) -> None:
    for member, value in _given_members(layout, values, what):
        _pack_one(member.type, value, raw, base + member.offset, f"{what}.{member.name}")


def _pack_one(kind: MemberType, value: Any, raw: bytearray, at: int, what: str) -> None:
    if kind.kind == "struct" and kind.layout is not None:
        _pack(kind.layout, value, raw, at, what)
    elif kind.kind == "array" and kind.element is not None:
        items = np.ravel(value).tolist() if isinstance(value, np.ndarray) else list(value)
        if len(items) > kind.count:
            raise UsageError(f"{what} has {kind.count} elements, not {len(items)}")
        for i, item in enumerate(items):
            _pack_one(kind.element, item, raw, at + i * kind.element.bytes, f"{what}[{i}]")
    elif kind.kind == "pointer":
        if _is_known(value):
            struct.pack_into("<I", raw, at, _address(value))
    else:
        _pack_number(kind, value, raw, at, what)


def _address(value: Any) -> int:
    if value is None:
        return 0
    return value.address if isinstance(value, DeviceTensor) else int(value)


def _pack_number(kind: MemberType, value: Any, raw: bytearray, at: int, what: str) -> None:
    code = _code(kind)
    if not code:
        raise UsageError(f"{what} is a bit field or of a type that cannot be given")
    try:
        struct.pack_into(f"<{code}", raw, at, float(value) if kind.kind == "float" else value)
    except (struct.error, OverflowError, TypeError, ValueError):
        sign = "" if kind.signed else "unsigned "
        raise UsageError(
            f"{what} is {sign}{kind.kind} of {kind.bytes} bytes and does not take {value!r}"
        ) from None


def _code(kind: MemberType) -> str:
    """Return the struct module's letter; "" for what is not a number."""
    if kind.kind == "float":
        return _FLOATS.get(kind.bytes, "")
    code = _INTEGERS.get(kind.bytes, "") if kind.kind == "int" else ""
    return code if kind.signed else code.upper()


def _mark(layout: StructLayout, found: bytearray, base: int) -> None:
    """Set the bytes of numbers and of arrays of them; of a union those of its members together."""
    for member in layout.members:
        kind, at = member.type, base + member.offset
        if kind.kind == "struct" and kind.layout is not None:
            _mark(kind.layout, found, at)
        elif _code(kind) or (kind.element is not None and _code(kind.element)):
            found[at : at + kind.bytes] = b"\1" * kind.bytes


def _unpack(layout: StructLayout, values: dict[str, Any], raw: bytes, base: int) -> None:
    for member in layout.members:
        old, kind, at = values.get(member.name), member.type, base + member.offset
        if kind.kind == "struct" and kind.layout is not None:
            _unpack(kind.layout, values.setdefault(member.name, {}), raw, at)
        elif kind.kind == "array" and kind.element is not None and _code(kind.element):
            code = f"<{kind.count}{_code(kind.element)}"
            values[member.name] = list(struct.unpack_from(code, raw, at))
        elif _code(kind):
            (new,) = struct.unpack_from(f"<{_code(kind)}", raw, at)
            if new != old:
                values[member.name] = new
