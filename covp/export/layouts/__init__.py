"""Layouts: the files of a project as a build system wants them. One file a build system."""

# each of these registers its layout
import covp.export.layouts.arduino
import covp.export.layouts.cmake
import covp.export.layouts.cmsis_pack
import covp.export.layouts.esp_idf
import covp.export.layouts.make
import covp.export.layouts.mlf
import covp.export.layouts.platformio
import covp.export.layouts.zephyr  # noqa: F401
from covp.export.layouts.registry import find_layout, layout_names

__all__ = ["find_layout", "layout_names"]
