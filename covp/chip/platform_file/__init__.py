"""`Platform`: a YAML file read into checked, frozen structures.

A platform file names a core, its clock, the memory map, the peripherals and the place for
accelerators. Every mistake is rejected with the file, the key and the reason.
"""

from covp.chip.platform_file.further_cores import FIRST, FurtherCore
from covp.chip.platform_file.memory import Region, WaitStates, join_regions, parse_size
from covp.chip.platform_file.model import (
    AcceleratorSlot,
    BoardSupport,
    OpenOcd,
    PeripheralConfig,
    Platform,
    Qemu,
)
from covp.chip.platform_file.reader import (
    every_platform,
    load_platform,
    platform_aliases,
    platform_names,
    platforms_dir,
    read_platform,
)
from covp.chip.platform_file.rules import first_problem

__all__ = [
    "FIRST",
    "AcceleratorSlot",
    "BoardSupport",
    "FurtherCore",
    "OpenOcd",
    "PeripheralConfig",
    "Platform",
    "Qemu",
    "Region",
    "WaitStates",
    "every_platform",
    "first_problem",
    "join_regions",
    "load_platform",
    "parse_size",
    "platform_aliases",
    "platform_names",
    "platforms_dir",
    "read_platform",
]
