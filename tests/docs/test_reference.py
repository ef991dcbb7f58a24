"""The pages of the API reference describe every public name."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
PUBLIC = (
    "covp",
    "covp.accelerator",
    "covp.testing.bisect",
    "covp.laboratory.coverage",
    "covp.evaluation",
    "covp.exploration.retiming",
    "covp.testing",
    "covp.testing.verify",
)
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


def functions(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """The public functions that a module defines, and the methods of its classes."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        for member in vars(value).values() if inspect.isclass(value) else (value,):
            found = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(found) and not found.__name__.startswith("_"):
                yield found


def test_docstrings_name_the_parameters() -> None:
    """Each of several parameters occurs in the text, which may leave them to another one's."""
    checked, silent = 0, []
    for name in described():
        if not (ROOT / name.replace(".", "/")).with_suffix(".py").is_file():
            continue  # a name: its module's
        for function in functions(importlib.import_module(name)):
            parameters = set(inspect.signature(function).parameters) - {"self", "cls"}
            text = function.__doc__ or ""
            if len(parameters) < 2 or text.startswith("See `"):
                continue
            checked += 1
            missing = [p for p in sorted(parameters) if not re.search(rf"\b{p}\b", text)]
            silent += [f"{name}: {function.__qualname__}: {p}" for p in missing]
    assert checked > 100
    assert silent == []
