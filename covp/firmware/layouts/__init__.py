"""Layouts: the files of a project as a build system wants them. One file a build system."""

from covp.firmware.layouts.registry import find_layout, layout_names

__all__ = ["find_layout", "layout_names"]
