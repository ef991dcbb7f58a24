"""`Signature`: parameters and result of a C function, from the compiler's DWARF information."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["int", "float", "pointer", "void", "other"]


@dataclass(frozen=True)
class CType:
    """A C type as far as calls need it.

    Attributes:
        kind: "other" is what cannot be passed: structures by value and the like.
        name: for messages, e.g. "const int8_t *".
        bytes: its size; 0 for void.
        signed: for integers.
        pointee: for pointers.
        const: values of the type are not changed.
    """

    kind: Kind
    name: str
    bytes: int = 0
    signed: bool = False
    pointee: CType | None = None
    const: bool = False


VOID = CType("void", "void")


@dataclass(frozen=True)
class SignatureParameter:
    """One argument of a function."""

    name: str
    type: CType


@dataclass(frozen=True)
class Signature:
    """A function's type."""

    name: str
    parameters: tuple[SignatureParameter, ...]
    result: CType
    variadic: bool = False

    def __str__(self) -> str:
        inside = ", ".join(f"{p.type.name} {p.name}".replace("* ", "*") for p in self.parameters)
        dots = ", ..." if self.variadic else ""
        return f"{self.result.name} {self.name}({inside or 'void'}{dots})"


def read_signatures(elf: bytes) -> dict[str, Signature]:
    """Read the external functions that an ELF file with DWARF (-g) defines, by name."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    if not file.has_dwarf_info():
        return {}
    found: dict[str, Signature] = {}
    for unit in file.get_dwarf_info().iter_CUs():
        for die in unit.get_top_DIE().iter_children():
            if die.tag != "DW_TAG_subprogram" or "DW_AT_low_pc" not in die.attributes:
                continue
            if _attribute(die, "DW_AT_external"):
                signature = _signature(die)
                found[signature.name] = signature
    return found


def _attribute(die: Any, name: str) -> Any:
    """Return an attribute's value, also where the entry only refers to its declaration."""
    if name in die.attributes:
        return die.attributes[name].value
    for reference in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if reference in die.attributes:
            return _attribute(die.get_DIE_from_attribute(reference), name)
    return None


def _text(die: Any) -> str:
    value = _attribute(die, "DW_AT_name")
    return value.decode() if value else ""


def _type_of(die: Any) -> CType:
    if "DW_AT_type" in die.attributes:
        return _c_type(die.get_DIE_from_attribute("DW_AT_type"))
    for reference in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if reference in die.attributes:
            return _type_of(die.get_DIE_from_attribute(reference))
    return VOID


def _signature(die: Any) -> Signature:
    children = list(die.iter_children())
    names_none = not any(child.tag == "DW_TAG_formal_parameter" for child in children)
    if names_none and "DW_AT_abstract_origin" in die.attributes:
        children = list(die.get_DIE_from_attribute("DW_AT_abstract_origin").iter_children())
    parameters = tuple(
        SignatureParameter(_text(child), _type_of(child))
        for child in children
        if child.tag == "DW_TAG_formal_parameter"
    )
    variadic = any(child.tag == "DW_TAG_unspecified_parameters" for child in children)
    return Signature(_text(die), parameters, _type_of(die), variadic)


_QUALIFIERS = {
    "DW_TAG_const_type": "const ",
    "DW_TAG_volatile_type": "volatile ",
    "DW_TAG_restrict_type": "",
    "DW_TAG_atomic_type": "_Atomic ",
}
_INTEGERS = {2: False, 5: True, 6: True, 7: False, 8: False}  # DW_ATE_...: signed
_FLOAT = 4


def _c_type(die: Any) -> CType:
    tag = die.tag
    if tag in _QUALIFIERS:
        inner = _type_of(die)
        if inner.kind == "pointer":
            return inner
        const = inner.const or tag == "DW_TAG_const_type"
        name = _QUALIFIERS[tag] + inner.name
        return CType(inner.kind, name, inner.bytes, inner.signed, inner.pointee, const)
    if tag == "DW_TAG_typedef":
        inner = _type_of(die)
        name = _text(die)
        return CType(inner.kind, name, inner.bytes, inner.signed, inner.pointee, inner.const)
    if tag == "DW_TAG_pointer_type":
        inner = _type_of(die)
        return CType("pointer", f"{inner.name} *", 4, False, inner)
    if tag == "DW_TAG_base_type":
        size, encoding = _attribute(die, "DW_AT_byte_size"), _attribute(die, "DW_AT_encoding")
        if encoding in _INTEGERS:
            return CType("int", _text(die), size, _INTEGERS[encoding])
        if encoding == _FLOAT:
            return CType("float", _text(die), size)
    if tag == "DW_TAG_enumeration_type":
        inner = _type_of(die)
        size = _attribute(die, "DW_AT_byte_size") or 4
        return CType("int", f"enum {_text(die)}".strip(), size, inner.signed)
    if tag == "DW_TAG_array_type":
        inner = _type_of(die)
        return CType("other", f"{inner.name} []", 0, inner.signed, inner, inner.const)
    if tag == "DW_TAG_subroutine_type":
        return CType("other", "function")
    kind = {"DW_TAG_structure_type": "struct", "DW_TAG_union_type": "union"}.get(tag, tag)
    return CType("other", f"{kind} {_text(die)}".strip(), _attribute(die, "DW_AT_byte_size") or 0)


def signature_to_data(signature: Signature) -> dict[str, Any]:
    """Convert a signature to plain lists and dictionaries, for the cache."""
    return asdict(signature)


def signature_from_data(data: dict[str, Any]) -> Signature:
    """Return the signature from the data of `signature_to_data`."""
    parameters = tuple(
        SignatureParameter(p["name"], _type_from_data(p["type"])) for p in data["parameters"]
    )
    result = _type_from_data(data["result"])
    return Signature(data["name"], parameters, result, data["variadic"])


def _type_from_data(data: dict[str, Any]) -> CType:
    pointee = data["pointee"]
    inner = _type_from_data(pointee) if pointee else None
    kind, name = data["kind"], data["name"]
    return CType(kind, name, data["bytes"], data["signed"], inner, data["const"])
