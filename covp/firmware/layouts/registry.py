"""The layouts by name; a file beside this one that registers one is found by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from covp.base.registry import Registry
from covp.errors import UsageError, near_misses

if TYPE_CHECKING:
    from covp.firmware.project import Project

Files = Mapping[str, str | bytes]
Layout = Callable[["Project"], Files]
"""From a project to its files: path relative to the folder, to content."""

_LAYOUTS: Registry[str, Layout] = Registry("covp.firmware.layouts")


def layout(name: str) -> Callable[[Layout], Layout]:
    """Register a layout under the name that users give."""

    def register(found: Layout) -> Layout:
        _LAYOUTS[name] = found
        return found

    return register


def layout_names() -> list[str]:
    """All names, sorted."""
    return sorted(_LAYOUTS)


def find_layout(name: str) -> Layout:
    """The layout of a name. Raises UsageError with near misses."""
    if name not in _LAYOUTS:
        raise UsageError(f"there is no layout {name!r}: {near_misses(name, _LAYOUTS)}")
    return _LAYOUTS[name]
