"""Programs on board support, without a model: linked, and run on a virtual board."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from covp.chip.platform_file import Platform
from covp.compilers.toolchain import get_toolchain, split_sources
from covp.device.debug.program_file import FirmwareRun, run_firmware
from covp.device.virtual import VirtualDevice
from covp.firmware.firmware import board_config, board_files
from covp.hardware.serial_port import SerialPort
from covp.runtime.standalone import link_standalone


def link_program(
    platform: Platform, main: str, toolchain: str = "zig", flags: Sequence[str] = ()
) -> Path:
    """The ELF file of ``main.c`` with the platform's board support, compiled without a warning."""
    config = {"board_config.h": board_config(platform)}
    sources, headers = split_sources({**board_files(platform), **config, "main.c": main})
    strict = ("-Werror", "-Wpedantic", "-Wconversion", "-Wcast-align", "-Wno-long-long")
    compiler = get_toolchain(toolchain, platform.core)
    return link_standalone(compiler, platform, sources, (*strict, *flags), headers)


def serial_port(device: VirtualDevice) -> SerialPort:
    """The board's."""
    return next(m for _, m in device.peripherals.values() if isinstance(m, SerialPort))


def output(platform: Platform, elf: Path) -> tuple[str, FirmwareRun]:
    """What a program sends over the serial port, and how it ends."""
    with VirtualDevice(platform) as device:
        run = run_firmware(device, elf, timeout=60)
        return serial_port(device).text, run
