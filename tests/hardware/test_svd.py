"""The SVD file against the rules of CMSIS-SVD.xsd 1.3, and against the maps it was made from."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from covp.chip.platform_file import load_platform, platform_names
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_models import load_peripheral
from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.svd import svd

# Of each element: its children in the schema's order; "!" must be there, "+" may be repeated.
SEQUENCES = {
    "device": "vendor vendorID name! series version! description! licenseText cpu "
    "headerSystemFilename headerDefinitionsPrefix addressUnitBits! width! size access protection "
    "resetValue resetMask peripherals! vendorExtensions",
    "peripherals": "peripheral!+",
    "peripheral": "dim dimIncrement dimIndex dimName dimArrayIndex name! version description "
    "alternatePeripheral groupName prependToName appendToName headerStructName disableCondition "
    "baseAddress! size access protection resetValue resetMask addressBlock+ interrupt+ registers",
    "addressBlock": "offset! size! usage! protection",
    "registers": "register!+",
    "register": "dim dimIncrement dimIndex dimName dimArrayIndex name! displayName description "
    "alternateGroup alternateRegister addressOffset! size access protection resetValue resetMask "
    "dataType modifiedWriteValues writeConstraint readAction fields",
    "fields": "field!+",
    "field": "dim dimIncrement dimIndex dimName dimArrayIndex name! description bitOffset! "
    "bitWidth access modifiedWriteValues writeConstraint readAction enumeratedValues+",
}
NUMBER = r"[+]?(0x|0X|#)?[0-9a-fA-F]+[kmgtKMGT]?"
TEXTS = {
    "name": r"[_A-Za-z][_A-Za-z0-9]*",
    "version": r".+",
    "description": r"[\x20-\x7e\xa0-\xff]+",
    "usage": "registers|buffer|reserved",
    "access": "read-only|write-only|read-write|writeOnce|read-writeOnce",
    "modifiedWriteValues": "oneToClear|oneToSet|oneToToggle|zeroToClear|zeroToSet|zeroToToggle|"
    "clear|set|modify",
}


def check(element: Element) -> None:
    """Order, number and texts of an element and all below it."""
    rules = SEQUENCES.get(element.tag)
    if rules is None:
        assert not len(element)
        assert re.fullmatch(TEXTS.get(element.tag, NUMBER), element.text or ""), element.tag
        return
    tags = [child.tag for child in element]
    known = [rule.rstrip("!+") for rule in rules.split()]
    assert [tag for tag in known for _ in range(tags.count(tag))] == tags, (element.tag, tags)
    for rule, tag in zip(rules.split(), known, strict=True):
        assert not ("!" in rule and tag not in tags), f"{element.tag} lacks {tag}"
        assert "+" in rule or tags.count(tag) < 2, f"{element.tag} has {tag} twice"
    for child in element:
        check(child)


def parse(text: str) -> Element:
    root = ElementTree.fromstring(text.encode())
    assert root.attrib == {"schemaVersion": "1.3"}
    check(root)
    return root


@pytest.mark.parametrize("name", [name for name in platform_names() if name != "host"])
def test_what_a_platform_has_is_described(name: str) -> None:
    platform = load_platform(name)
    with VirtualDevice(platform) as device:
        device.attach(load_peripheral("qconv2d"), 0x72000000, "qconv2d-0")
        root = parse(svd(platform, device.peripherals))
        shown = {p.findtext("name"): p for p in root.iter("peripheral")}
        assert len(shown) == len(device.peripherals)
        for peripheral, (base, model) in device.peripherals.items():
            compare(shown[peripheral.replace("-", "_")], base, model)


def number(element: Element, tag: str) -> int:
    return int(element.findtext(tag) or "missing", 0)


def compare(element: Element, base: int, model: Peripheral) -> None:
    assert number(element, "baseAddress") == base
    assert number(element, "addressBlock/size") == model.size
    registers = list(element.iter("register"))
    assert [r.findtext("name") for r in registers] == [r.name for r in model.registers]
    for shown, register in zip(registers, model.registers, strict=True):
        assert number(shown, "addressOffset") == register.offset
        assert number(shown, "resetValue") == register.reset_value
        places = {
            (f.findtext("name"), number(f, "bitOffset"), number(f, "bitWidth"))
            for f in shown.iter("field")
        }
        assert places == {(f.name, f.bit, f.width) for f in register.fields}


class Odd(Peripheral):
    """Ωne with <odd> & rare things."""

    registers = RegisterMap(
        Register("FLAGS", 0, fields=[Field("DONE", 3, access="w1c"), Field("GO", 0, access="wo")]),
        Register("CLEARS", 4, access="w1c", doc='Says "A" & <B>, in µs.'),
        Register("ALL", 8, access="ro", fields=[Field("PART", 4, 8)], reset=0x80000000),
    )


def test_access_rules_and_odd_texts() -> None:
    platform = load_platform("riscv32")
    root = parse(svd(platform, {"2nd one": (0x1000, Odd()), "bare": (0, Peripheral())}))
    first, odd = root.iter("peripheral")
    assert first.find("registers") is None
    assert odd.findtext("name") == "_2nd_one"
    assert odd.findtext("description") == "?ne with <odd> & rare things."
    access = {
        e.findtext("name"): (e.findtext("access"), e.findtext("modifiedWriteValues"))
        for tag in ("register", "field")
        for e in odd.iter(tag)
    }
    assert access == {
        "FLAGS": ("read-write", None), "CLEARS": ("read-write", "oneToClear"),
        "ALL": ("read-only", None), "DONE": ("read-write", "oneToClear"),
        "GO": ("write-only", None), "PART": ("read-only", None),
    }  # fmt: skip
    assert odd.findtext("registers/register[name='CLEARS']/description") == (
        'Says "A" & <B>, in µs.'
    )
    assert odd.findtext("registers/register[name='ALL']/resetValue") == "0x80000000"


def test_no_peripheral_no_file() -> None:
    with pytest.raises(PlatformError, match="no peripheral"):
        svd(load_platform("riscv32"), {})


def test_the_rules_can_be_broken() -> None:
    """The check itself: what svd-files must not look like."""
    good = svd(load_platform("riscv32"), {"odd": (0, Odd())})
    for old, new in (
        ("<width>32</width>", ""),
        ("<name>odd</name>", "<name>odd</name><name>odd</name>"),
        ("<size>32</size>", "<fields/><size>32</size>"),
        ("read-only", "read"),
        ("<name>ALL</name>", "<name>A L</name>"),
    ):
        assert old in good
        with pytest.raises(AssertionError):
            parse(good.replace(old, new, 1))
