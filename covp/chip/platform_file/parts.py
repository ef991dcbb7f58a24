"""Further parts of a platform file: peripherals, accelerators' slots, QEMU, OpenOCD, firmware."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from covp.chip.platform_file.further_cores import FIRST
from covp.chip.platform_file.memory import Address

Irq = Annotated[int, msgspec.Meta(ge=0, le=239)]


class PeripheralConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A peripheral on the bus: ``model`` is a module name in covp.peripherals or "module:Class".

    ``irq`` is the number of its interrupt line: as vendors count them, after the core's own
    exceptions on Arm; all lines together are the machine external interrupt on RISC-V. ``core`` is
    the name of the core that the line leads to.
    """

    name: str
    model: str
    base: Address
    parameters: dict[str, Any] = {}
    irq: Irq | None = None
    core: str = FIRST


class AcceleratorSlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses for accelerators named at run time, one every ``stride`` bytes.

    The first one's interrupt is line ``irq``, the next one's the following line.
    """

    base: Address
    stride: Annotated[int, msgspec.Meta(ge=0x1000)] = 0x1000
    irq: Irq | None = None


class Qemu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The QEMU machine with this memory map: ``-M machine -cpu cpu`` and further options."""

    machine: str
    cpu: str = ""
    options: tuple[str, ...] = ()


class OpenOcd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The OpenOCD configuration of the real board.

    ``board`` is OpenOCD's stock configuration file; ``commands`` run before its ``init``,
    ``init`` after it, such as clocks and flash wait states.
    """

    board: str
    commands: tuple[str, ...] = ()
    init: tuple[str, ...] = ()


class Firmware(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The board support of firmware: a file of device_runtime/boards and the macros it takes."""

    board: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$")] = "generic"
    defines: dict[str, str | int] = {}
