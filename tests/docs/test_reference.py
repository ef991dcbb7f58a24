"""The pages of the API reference describe every public name."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
PUBLIC = ("covp", "covp.accelerator", "covp.evaluation", "covp.testing", "covp.verify")
"""Packages whose ``__all__`` is the public interface."""


def described() -> list[str]:
    """What the directives of all pages name; ``package.*`` as its modules."""
    found: list[str] = []
    for page in PAGES:
        for name in re.findall(r"^::: (covp[\w.*]*)$", page.read_text(encoding="utf-8"), re.M):
            folder = ROOT / name.removesuffix(".*").replace(".", "/")
            modules = [f"{name[:-2]}.{file.stem}" for file in folder.glob("[!_]*.py")]
            found += modules if name.endswith(".*") else [name]
    return found


def test_nothing_is_described_twice() -> None:
    found = described()
    assert len(found) > 30
    assert sorted(set(found)) == sorted(found)


def test_directives_name_what_there_is() -> None:
    for name in described():
        parent, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(parent), last) or importlib.import_module(name)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_described(package: str) -> None:
    known = set(described())
    for name in importlib.import_module(package).__all__:
        assert homes(package, name) & known, f"{package}.{name} is on no page"


def homes(package: str, name: str) -> set[str]:
    """The directives that describe a public name: its own, or the module that defines it."""
    value = getattr(importlib.import_module(package), name)
    if isinstance(value, ModuleType):
        return {value.__name__}
    home = getattr(value, "__module__", None) or f"{package}.declared"  # a tuple has none
    return {home, f"{package}.{name}"}
