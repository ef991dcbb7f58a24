"""The registers of a platform's peripherals as a CMSIS-SVD file, for debuggers' register views.

Written against Arm's schema CMSIS-SVD.xsd 1.3, which fixes the order of the elements too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from covp.chip.platform_file import Platform
from covp.errors import PlatformError
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Access, Field, Register

_ACCESS: dict[Access, str] = {
    "rw": "read-write", "ro": "read-only", "wo": "write-only", "w1c": "read-write",
}  # fmt: skip
_NO_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")
_NOT_LATIN_1 = re.compile(r"[^\x20-\x7e\xa0-\xff]")


def svd(platform: Platform, peripherals: Mapping[str, tuple[int, Peripheral]]) -> str:
    """Return the XML document.

    Args:
        platform: for the name of the device and its description.
        peripherals: name to (base address, model), as `VirtualDevice.peripherals`.

    Raises:
        PlatformError: there is no peripheral, and SVD has no word for that.
    """
    if not peripherals:
        raise PlatformError(f"{platform.name}: there is no peripheral that an SVD file could show")
    device = Element("device", schemaVersion="1.3")
    _add(device, "name", _identifier(platform.name))
    _add(device, "version", "1.0")
    _add(device, "description", platform.description or platform.name)
    _add(device, "addressUnitBits", "8")
    _add(device, "width", "32")
    parent = SubElement(device, "peripherals")
    for name, (base, model) in sorted(peripherals.items(), key=lambda item: item[1][0]):
        _add_peripheral(parent, name, base, model)
    ElementTree.indent(device)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        + ElementTree.tostring(device, encoding="unicode")
        + "\n"
    )


def _add_peripheral(parent: Element, name: str, base: int, model: Peripheral) -> None:
    peripheral = SubElement(parent, "peripheral")
    _add(peripheral, "name", _identifier(name))
    _add(peripheral, "description", model.description)
    _add(peripheral, "baseAddress", f"0x{base:08x}")
    block = SubElement(peripheral, "addressBlock")
    _add(block, "offset", "0x0")
    _add(block, "size", f"0x{model.size:x}")
    _add(block, "usage", "registers")
    if len(model.registers):
        registers = SubElement(peripheral, "registers")
        for register in model.registers:
            _add_register(registers, register)


def _add_register(parent: Element, register: Register) -> None:
    element = SubElement(parent, "register")
    _add(element, "name", register.name)
    _add(element, "description", register.doc)
    _add(element, "addressOffset", f"0x{register.offset:x}")
    _add(element, "size", "32")
    _add(element, "access", _ACCESS[register.access])
    _add(element, "resetValue", f"0x{register.reset_value:08x}")
    _add(element, "modifiedWriteValues", _write_effect(register.access))
    if register.fields:
        fields = SubElement(element, "fields")
        for field in sorted(register.fields, key=lambda field: field.bit):
            _add_field(fields, register, field)


def _add_field(parent: Element, register: Register, field: Field) -> None:
    # the register's rule covers all of it; with "rw" the fields have their own
    access = field.access if register.access == "rw" else register.access
    element = SubElement(parent, "field")
    _add(element, "name", field.name)
    _add(element, "description", field.doc)
    _add(element, "bitOffset", str(field.bit))
    _add(element, "bitWidth", str(field.width))
    _add(element, "access", _ACCESS[access])
    _add(element, "modifiedWriteValues", _write_effect(access))


def _write_effect(access: Access) -> str:
    return "oneToClear" if access == "w1c" else ""


def _add(parent: Element, tag: str, text: str) -> None:
    """Add an element with text, but none without text: the schema has no empty ones."""
    if text:
        SubElement(parent, tag).text = _NOT_LATIN_1.sub("?", text)


def _identifier(name: str) -> str:
    """Return a name as the schema allows it, which is a C identifier."""
    text = _NO_IDENTIFIER.sub("_", name)
    return f"_{text}" if text[:1].isdigit() else text
