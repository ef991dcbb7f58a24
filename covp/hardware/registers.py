"""Register maps as data: the model's access rules, the driver's C header and the manual's table."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Access = Literal["rw", "ro", "wo", "w1c"]
_NAME = re.compile(r"^[A-Z][A-Z0-9_]*$")
_ACCESS_WORDS = {"rw": "read/write", "ro": "read-only", "wo": "write-only", "w1c": "write 1 clears"}


@dataclass(frozen=True)
class Field:
    """A bit field of a register.

    Attributes:
        name: upper case.
        bit: the lowest bit, 0..31.
        width: number of bits.
        access: "rw", "ro" (a write leaves it alone), "wo" (reads as 0), "w1c" (writing 1 clears).
        reset: value after reset, 0 <= reset < 2**width.
        on_write: name of the model's method called with the field's written value after every
            write of the register in which that value is not 0.
        doc: one sentence.
    """

    name: str
    bit: int
    width: int = 1
    access: Access = "rw"
    reset: int = 0
    on_write: str | None = None
    doc: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not (self.bit >= 0 and self.width >= 1 and self.bit + self.width <= 32):
            raise ValueError(f"field {self.name}: bits {self.bit}+{self.width} leave the register")
        if not 0 <= self.reset < 1 << self.width:
            raise ValueError(
                f"field {self.name}: reset {self.reset} does not fit {self.width} bits"
            )
        _check_access(self.name, self.access)

    @functools.cached_property  # accesses ask for it
    def mask(self) -> int:
        """The field's bits at their position in the register."""
        return ((1 << self.width) - 1) << self.bit

    def get(self, value: int) -> int:
        """Return the field's value out of the register's."""
        return (value & self.mask) >> self.bit

    def put(self, value: int, field_value: int) -> int:
        """Return the register's value with the field set to ``field_value``."""
        return (value & ~self.mask) | ((field_value << self.bit) & self.mask)


@dataclass(frozen=True)
class Register:
    """A 32-bit register.

    Attributes:
        name: upper case.
        offset: bytes from the base, a multiple of 4.
        access: as in `Field`; writing "ro" and reading "wo" is a fault. With fields, "rw" leaves
            the rules to them.
        reset: value after reset; with fields their reset values are or-ed in.
        fields: do not overlap; bits outside them are reserved: they read 0, writing 1 is a fault.
            Without fields all 32 bits are the value.
        doc: one sentence.
        on_write: name of the model's method called with the register's value after every write.
        on_read: name of the model's method called before every read; it may update the value.
    """

    name: str
    offset: int
    access: Access = "rw"
    reset: int = 0
    fields: tuple[Field, ...] | list[Field] = ()
    doc: str = ""
    on_write: str | None = None
    on_read: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_access(self.name, self.access)
        object.__setattr__(self, "fields", tuple(self.fields))
        if self.offset < 0 or self.offset % 4:
            raise ValueError(f"register {self.name}: offset {self.offset} is not a multiple of 4")
        if not 0 <= self.reset < 1 << 32:
            raise ValueError(f"register {self.name}: reset {self.reset} does not fit 32 bits")
        seen = 0
        for field in self.fields:
            if seen & field.mask:
                raise ValueError(f"register {self.name}: field {field.name} overlaps another")
            seen |= field.mask
        if len({field.name for field in self.fields}) != len(self.fields):
            raise ValueError(f"register {self.name}: a field name is used twice")

    def __getitem__(self, name: str) -> Field:
        """Return the field of that name. Raises KeyError."""
        try:
            return self._fields_by_name[name]
        except KeyError:
            raise KeyError(f"register {self.name} has no field {name}") from None

    @functools.cached_property
    def _fields_by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @property
    def reset_value(self) -> int:
        """Value after reset, fields included."""
        value = self.reset
        for field in self.fields:
            value |= field.reset << field.bit
        return value

    @functools.cached_property
    def defined_bits(self) -> int:
        """Mask of the bits that are not reserved."""
        return sum(field.mask for field in self.fields) if self.fields else 0xFFFFFFFF

    @functools.cached_property
    def cleared_by_ones(self) -> int:
        """Mask of the bits that are cleared by writing 1."""
        if self.access == "w1c":
            return self.defined_bits
        return sum(field.mask for field in self.fields if field.access == "w1c")


class RegisterMap:
    """The registers of a peripheral, in the order of their offsets.

    Raises:
        ValueError: two registers share a name, an offset or a name in the C header.
    """

    def __init__(self, *registers: Register) -> None:
        self._by_offset = {register.offset: register for register in registers}
        self._by_name = {register.name: register for register in registers}
        if len(self._by_offset) != len(registers) or len(self._by_name) != len(registers):
            names = [register.name for register in registers]
            twice = {name for name in names if names.count(name) > 1}
            raise ValueError(
                f"register map: {', '.join(sorted(twice)) or 'an offset'} is used twice"
            )
        owners: dict[str, str] = {}
        for register in self:
            for macro in _macros(register):
                other = owners.setdefault(macro, register.name)
                if macro in _TAKEN or other != register.name:
                    both = "the unit" if macro in _TAKEN else other
                    raise ValueError(
                        f"register map: {both} and register {register.name} both need the name "
                        f"{macro} in the C header; rename one"
                    )

    def __iter__(self) -> Iterator[Register]:
        return iter(sorted(self._by_offset.values(), key=lambda register: register.offset))

    def __len__(self) -> int:
        return len(self._by_offset)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Register:
        """Return the register of that name. Raises KeyError."""
        return self._by_name[name]

    def at(self, offset: int) -> Register | None:
        """Return the register at that offset, or None."""
        return self._by_offset.get(offset)

    @property
    def size(self) -> int:
        """Bytes from the base to the end of the last register."""
        return max(self._by_offset, default=-4) + 4

    def c_header(self, prefix: str, base: int | None = None) -> str:
        """Return the C header that a driver includes.

        Args:
            prefix: PREFIX, an upper-case C identifier.
            base: the bus address of the first register, if it is known.

        It defines ``PREFIX_BASE`` (with ``base``), for every register ``PREFIX_REG_OFFSET`` and,
        with ``base``, the lvalue ``PREFIX_REG``; for every field ``PREFIX_REG_FIELD_BIT``,
        ``_MASK`` and, wider than one bit, ``PREFIX_REG_FIELD(value)``.
        """
        guard = f"{prefix}_REGISTERS_H"
        lines = [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", ""]
        if base is not None:
            lines += [f"#define {prefix}_BASE 0x{base:08x}u", ""]
        for register in self:
            lines += _c_register(prefix, register, base is not None)
        lines += [f"#endif /* {guard} */", ""]
        return "\n".join(lines)

    def markdown(self) -> str:
        """Return the table for the manual: one row per register and one per field."""
        lines = [
            "| offset | register | bits | access | reset | meaning |",
            "|---|---|---|---|---|---|",
        ]
        for register in self:
            access = _ACCESS_WORDS[register.access]
            lines.append(
                f"| 0x{register.offset:02x} | {register.name} | 31:0 | {access} | "
                f"0x{register.reset_value:08x} | {register.doc} |"
            )
            for field in sorted(register.fields, key=lambda field: field.bit):
                top = field.bit + field.width - 1
                bits = str(field.bit) if field.width == 1 else f"{top}:{field.bit}"
                lines.append(
                    f"| | .{field.name} | {bits} | {_ACCESS_WORDS[field.access]} | {field.reset} | "
                    f"{field.doc} |"
                )
        return "\n".join(lines) + "\n"


_TAKEN = frozenset({"BASE", "IRQ"})


def _macros(register: Register) -> list[str]:
    """Return the names that the C header defines for a register, without the prefix."""
    fields = [f"{register.name}_{field.name}" for field in register.fields]
    parts = [f"{field}{end}" for field in fields for end in ("", "_BIT", "_MASK")]
    return [register.name, f"{register.name}_OFFSET", *parts]


def _c_register(prefix: str, register: Register, with_lvalue: bool) -> list[str]:
    name = f"{prefix}_{register.name}"
    lines = [f"/* {register.doc} */"] if register.doc else []
    lines.append(f"#define {name}_OFFSET 0x{register.offset:02x}u")
    if with_lvalue:
        const = "const " if register.access == "ro" else ""
        lines.append(
            f"#define {name} (*(volatile {const}uint32_t *)({prefix}_BASE + {name}_OFFSET))"
        )
    for field in register.fields:
        lines.append(f"#define {name}_{field.name}_BIT {field.bit}u")
        lines.append(f"#define {name}_{field.name}_MASK 0x{field.mask:08x}u")
        if field.width > 1:
            lines.append(
                f"#define {name}_{field.name}(value) "
                f"(((uint32_t)(value) << {field.bit}) & 0x{field.mask:08x}u)"
            )
    return [*lines, ""]


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise ValueError(f"{name!r}: a register or field name is upper case letters, digits and _")


def _check_access(name: str, access: str) -> None:
    if access not in _ACCESS_WORDS:
        raise ValueError(f"{name}: access {access!r} is not one of {', '.join(_ACCESS_WORDS)}")
