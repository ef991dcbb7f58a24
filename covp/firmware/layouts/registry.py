"""The layouts by name; a file beside this one that registers one is found by itself.

Other packages bring one by an entry point of the group ``covp.layouts``: a function as `Layout`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from covp.base.plugins import describe
from covp.base.registry import Registry
from covp.errors import UsageError, near_misses

if TYPE_CHECKING:
    from covp.firmware.project import Project

Files = Mapping[str, str | bytes]
Layout = Callable[["Project"], Files]
"""Function from a project to its files: relative path to content."""

ENTRY_POINTS = "covp.layouts"
_LAYOUTS: Registry[str, Layout] = Registry("covp.firmware.layouts")


def layout(name: str) -> Callable[[Layout], Layout]:
    """Register a layout under the name that users give."""

    def register(found: Layout) -> Layout:
        _LAYOUTS[name] = found
        return found

    return register


@functools.cache
def _load_plugins() -> None:
    """Register what other packages name in the entry point group; covp's own stay as they are."""
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in _LAYOUTS:
            continue
        try:
            _LAYOUTS[entry.name] = entry.load()
        except Exception as error:
            raise UsageError(f"layout {entry.name} ({entry.value}): {describe(error)}") from error


def layout_names() -> list[str]:
    """Return all names, sorted."""
    _load_plugins()
    return sorted(_LAYOUTS)


def find_layout(name: str) -> Layout:
    """Return the layout of a name. Raises UsageError with near misses."""
    _load_plugins()
    if name not in _LAYOUTS:
        raise UsageError(f"there is no layout {name!r}:", hint=near_misses(name, _LAYOUTS))
    return _LAYOUTS[name]
