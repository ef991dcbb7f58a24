"""Layouts: the files of a project as a build system wants them. One file a build system."""

# each of these registers its layout
import covp.firmware.layouts.arduino
import covp.firmware.layouts.cmake
import covp.firmware.layouts.cmsis_pack
import covp.firmware.layouts.esp_idf
import covp.firmware.layouts.make
import covp.firmware.layouts.mlf
import covp.firmware.layouts.platformio
import covp.firmware.layouts.zephyr  # noqa: F401
from covp.firmware.layouts.registry import find_layout, layout_names

__all__ = ["find_layout", "layout_names"]
