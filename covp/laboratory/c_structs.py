"""`StructLayout`: the members of a C structure, from the compiler's DWARF information."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from covp.errors import UsageError, near_misses

_SIGNED = {2: False, 5: True, 6: True, 7: False, 8: False}  # DW_ATE_...
_FLOAT = 4
_THROUGH = (
    *("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"),
    *("DW_TAG_restrict_type", "DW_TAG_atomic_type"),
)


@dataclass(frozen=True)
class MemberType:
    """The type of a member.

    Attributes:
        kind: "struct" is also a union; "other" cannot be given: a bit field.
        bytes: its size.
        signed: of integers.
        const: of pointers: what they point to is not changed.
        layout: of structures.
        element, count: of arrays.
        pointee: the name of the structure that a pointer points to; "": of something else.
    """

    kind: Literal["int", "float", "pointer", "struct", "array", "other"]
    bytes: int
    signed: bool = False
    const: bool = False
    layout: StructLayout | None = None
    element: MemberType | None = None
    count: int = 0
    pointee: str = ""


@dataclass(frozen=True)
class Member:
    """A member at an offset in bytes."""

    name: str
    offset: int
    type: MemberType


@dataclass(frozen=True)
class StructLayout:
    """A structure or union; all members of a union are at offset 0."""

    name: str
    bytes: int
    members: tuple[Member, ...]


@lru_cache(maxsize=256)
def read_layout(elf: bytes, name: str) -> StructLayout:
    """Return the layout of a structure by its name in an ELF file with DWARF (-g).

    Args:
        elf: the file.
        name: "conv_params" of ``typedef struct {...} conv_params`` or of ``struct conv_params``.

    Raises:
        UsageError: there is none, with names that are like it.
    """
    names = set()
    for die in _types(elf):
        found = _name(die)
        names.add(found)
        if found == name:
            struct = _resolve_type(die)
            if _is_struct(struct) and "DW_AT_byte_size" in struct.attributes:
                return _layout(struct, name)
    raise UsageError(f"there is no C structure {name}:", hint=near_misses(name, names - {""}))


def _types(elf: bytes) -> Iterator[Any]:
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    if file.has_dwarf_info():
        for unit in file.get_dwarf_info().iter_CUs():
            for die in unit.get_top_DIE().iter_children():
                if die.tag == "DW_TAG_typedef" or _is_struct(die):
                    yield die


def _is_struct(die: Any) -> bool:
    return die is not None and die.tag in ("DW_TAG_structure_type", "DW_TAG_union_type")


def _name(die: Any) -> str:
    attribute = die.attributes.get("DW_AT_name")
    return attribute.value.decode() if attribute else ""


def _target(die: Any) -> Any:
    return die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None


def _resolve_type(die: Any) -> Any:
    """Follow typedefs and qualifiers to the type itself."""
    while die is not None and die.tag in _THROUGH:
        die = _target(die)
    return die


def _number(die: Any, attribute: str, default: int = 0) -> int:
    found = die.attributes.get(attribute)
    return int(found.value) if found is not None else default


def _layout(struct: Any, name: str) -> StructLayout:
    members = tuple(
        Member(_name(child), _number(child, "DW_AT_data_member_location"), _member(child))
        for child in struct.iter_children()
        if child.tag == "DW_TAG_member"
    )
    return StructLayout(name, _number(struct, "DW_AT_byte_size"), members)


def _member(die: Any) -> MemberType:
    if "DW_AT_bit_size" in die.attributes:
        return MemberType("other", 0)
    return _type(_target(die))


def _type(die: Any) -> MemberType:
    real = _resolve_type(die)
    size = _number(real, "DW_AT_byte_size")
    if real.tag == "DW_TAG_base_type":
        encoding = _number(real, "DW_AT_encoding")
        kind: Any = "float" if encoding == _FLOAT else "int" if encoding in _SIGNED else "other"
        return MemberType(kind, size, _SIGNED.get(encoding, True))
    if real.tag == "DW_TAG_enumeration_type":
        return MemberType("int", size or 4, _target(real) is None or _type(_target(real)).signed)
    if real.tag == "DW_TAG_pointer_type":
        target = _target(real)
        struct = _resolve_type(target)
        named = _pointee_name(target) if _is_struct(struct) else ""
        return MemberType("pointer", 4, const=_is_const(target), pointee=named)
    if _is_struct(real):
        return MemberType("struct", size, layout=_layout(real, _name(real) or _name(die)))
    if real.tag == "DW_TAG_array_type":
        return _array(real)
    return MemberType("other", size)


def _array(die: Any) -> MemberType:
    element, count = _type(_target(die)), 1
    for child in die.iter_children():
        if child.tag == "DW_TAG_subrange_type":
            upper = _number(child, "DW_AT_upper_bound", -1) + 1
            count *= _number(child, "DW_AT_count", upper)
    return MemberType("array", element.bytes * count, element=element, count=count)


def _is_const(die: Any) -> bool:
    while die is not None and die.tag in _THROUGH:
        if die.tag == "DW_TAG_const_type":
            return True
        die = _target(die)
    return False


def _pointee_name(die: Any) -> str:
    while die.tag in _THROUGH and not (die.tag == "DW_TAG_typedef" and _name(die)):
        die = _target(die)
    return _name(die)
