"""Layouts: the files of a project as a build system wants them. One file a build system."""

# each of these registers its layout
import covp.export.layouts.make  # noqa: F401
from covp.export.layouts.registry import find_layout, layout_names

__all__ = ["find_layout", "layout_names"]
