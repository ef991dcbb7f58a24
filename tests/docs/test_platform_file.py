"""docs/platform-file.md has every key of the platform file, with its type, default and values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from covp.chip.cores import core_names
from covp.chip.platform_file import Platform, load_platform
from covp.errors import PlatformError
from covp.hardware.peripheral_models import peripheral_names

PAGE = Path(__file__).parents[2] / "docs" / "platform-file.md"
GOOD = """
name: board
core: cortex-m4f
clock_hz: 1000000
memory:
  - {name: flash, kind: flash, start: 0x08000000, size: 16K}
  - {name: ram, kind: ram, start: 0x20000000, size: 16K}
peripherals: [{name: uart0, model: uart, base: 0x40000000}]
accelerators: {base: 0x50000000}
"""


def parts(kind: inspect.Type, where: str) -> dict[str, type[msgspec.Struct]]:
    """The structs of a type by the heading that they have."""
    if isinstance(kind, inspect.VarTupleType):
        return parts(kind.item_type, f"{where}[]")
    if isinstance(kind, inspect.UnionType):
        return {k: v for one in kind.types for k, v in parts(one, where).items()}
    if not isinstance(kind, inspect.StructType):
        return {}
    inner = [parts(field.type, field.encode_name) for field in kind.fields]
    return {where: kind.cls} | {k: v for one in inner for k, v in one.items()}


STRUCTS = parts(inspect.type_info(Platform), "Top level")


def table(heading: str) -> dict[str, list[str]]:
    """Key to the other cells of a section's table."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()
            if line.startswith("| `")]  # fmt: skip
    return {row[0].strip("`"): row[1:] for row in rows}


def words(kind: inspect.Type, key: str) -> str:
    """A type as the page names it."""
    match kind:
        case inspect.IntType():
            return "integer"
        case inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "boolean"
        case inspect.StrType() | inspect.LiteralType():
            return "string"
        case inspect.DictType():
            return "mapping"
        case inspect.StructType():
            return f"`{key}`"
        case inspect.VarTupleType():
            return f"list of {words(kind.item_type, f'{key}[]')}"
        case inspect.UnionType():
            return " or ".join(words(k, key) for k in kind.types if not is_none(k))
    raise AssertionError(kind)


def is_none(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.NoneType)


def default(field: inspect.Field) -> str:
    """A default as the page says it."""
    if field.required:
        return "required"
    if field.default is None:
        return "none"
    if field.default in ("", (), msgspec.NODEFAULT):
        return "empty"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    is_address = isinstance(field.default, int) and field.default >= 1024
    return f"`{field.default:#x}`" if is_address else f"`{field.default}`"


def bounds(kind: inspect.Type) -> list[str]:
    """What the allowed values have to say."""
    match kind:
        case inspect.UnionType():
            return [text for one in kind.types for text in bounds(one)]
        case inspect.LiteralType():
            return [f"`{value}`" for value in kind.values]
        case inspect.FloatType(gt=float(above)):
            return [f"above {above:g}"]
        case inspect.IntType(gt=int(above)):
            return [f"above {above}"]
        case inspect.IntType(ge=int(low), le=int(high)):
            return [f"{low} to {high if high < 1024 else hex(high)}"]
        case inspect.IntType(ge=int(low)):
            return [f"at least {low:#x}"]
    return []


@pytest.mark.parametrize("heading", STRUCTS)
def test_every_key_is_described_and_no_other(heading: str) -> None:
    described = table(heading)
    info = inspect.type_info(STRUCTS[heading])
    assert isinstance(info, inspect.StructType)
    assert list(described) == [field.encode_name for field in info.fields]
    for field in info.fields:
        kind, _, stated, allowed, _ = described[field.encode_name]
        assert (kind, stated) == (words(field.type, field.encode_name), default(field)), field
        assert all(text in allowed for text in bounds(field.type)), field.encode_name


def test_every_struct_has_a_section() -> None:
    assert set(STRUCTS) == {
        "Top level", "memory[]", "wait_states", "interface", "peripherals[]", "accelerators",
        "openocd", "qemu", "firmware", "energy", "caches[]", "further_cores[]",
    }  # fmt: skip


def test_every_core_and_peripheral_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## Cores\n")[1]
    first = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = [name for cell in first for name in re.findall("`([^`]+)`", cell)]
    assert sorted(named) == core_names()
    assert list(table("Peripheral models")) == peripheral_names()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: ram", "kind: rom", r"memory\[1\]\.kind: 'rom': did you mean ram"),
        ("clock_hz", "clok_hz", r"unknown key 'clok_hz': did you mean clock_hz"),
        ("size: 16K}", "sise: 16K}", r"memory\[0\]: unknown key 'sise': did you mean size"),
        ("base: 0x5", "irk: 3, base: 0x5", r"accelerators: unknown key 'irk': did you mean irq"),
        ("base: 0x4", "zzz: 3, base: 0x4", r"peripherals\[0\]: .*known are base, core, irq"),
        ("core: cortex-m4f", "core: m99", r"core: .*cortex-m4f"),
    ],
)
def test_a_refusal_names_what_is_allowed(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "board.yaml"
    file.write_text(GOOD)
    load_platform(file)
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(PlatformError, match=said) as caught:
        load_platform(file)
    assert "\n" not in str(caught.value)


def test_what_the_page_allows_of_sizes_holds(tmp_path: Path) -> None:
    file = tmp_path / "board.yaml"
    cases: dict[Any, bool] = {512: True, "1K": True, 500: False, 520: False, "16K": False}
    for stack, allowed in cases.items():
        file.write_text(f"{GOOD}stack: {stack}\n")
        try:
            load_platform(file)
        except PlatformError as error:
            assert not allowed and "stack: " in str(error)
        else:
            assert allowed, stack
