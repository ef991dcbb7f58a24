"""Firmware in C on a virtual device with peripherals, for tests of their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from covp.chip.platform_file import PeripheralConfig, load_platform
from covp.compilers.elf import ElfImage
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.debug.program_file import FirmwareRun, run_firmware
from covp.device.virtual import VirtualDevice
from covp.hardware.peripheral import Peripheral
from covp.runtime.standalone import link_standalone

BASE, LINE = 0x60000000, 3
PLATFORMS = ("cortex-m0plus", "cortex-m4", "riscv32")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
PROLOGUE = f"""
#include <stdint.h>
#include "covp_interrupt.h"
/* Interrupts of line n of LINE.. are on; covp_interrupt of the program is their handler. */
static inline __attribute__((unused)) void interrupts_on(uint32_t lines)
{{
#ifdef __arm__
    *(volatile uint32_t *)0xe000e100u = lines << {LINE};
    __asm__ volatile("cpsie i" ::: "memory");
#else
    (void)lines;
    __asm__ volatile("csrs mie, %0\\n\\tcsrsi mstatus, 8" ::"r"(0x800u) : "memory");
#endif
}}
void covp_interrupt(void);
"""


class Bench:
    """A program with peripherals at BASE, BASE + 0x1000, ... on lines LINE, LINE + 1, ...

    Each is (name, model, parameters); the program has their addresses as NAME_BASE.
    """

    def __init__(
        self, platform: str, program: str, *peripherals: tuple[str, str, dict[str, Any]]
    ) -> None:
        configs = [
            PeripheralConfig(name, model, BASE + 0x1000 * number, parameters, LINE + number)
            for number, (name, model, parameters) in enumerate(peripherals)
        ]
        chosen = msgspec.structs.replace(load_platform(platform), peripherals=configs)
        bases = [f"-D{one.name.upper()}_BASE=0x{one.base:x}u" for one in configs]
        toolchain = get_toolchain("zig", chosen.core)
        source = [SourceText("main.c", PROLOGUE + program)]
        self.elf: Path = link_standalone(toolchain, chosen, source, (*STRICT, "-O1", *bases))
        self.symbols = ElfImage(self.elf.read_bytes()).symbols
        self.device = VirtualDevice(chosen)

    def __getitem__(self, name: str) -> Peripheral:
        return self.device.peripherals[name][1]

    def run(self, timeout: float = 60) -> FirmwareRun:
        return run_firmware(self.device, self.elf, timeout)

    def words(self, symbol: str, count: int = 1) -> list[int]:
        data = self.device.read(self.symbols[symbol].address, 4 * count)
        return [int.from_bytes(data[n : n + 4], "little") for n in range(0, 4 * count, 4)]

    def halfwords(self, symbol: str, count: int) -> list[int]:
        data = self.device.read(self.symbols[symbol].address, 2 * count)
        pairs = (data[n : n + 2] for n in range(0, 2 * count, 2))
        return [int.from_bytes(pair, "little", signed=True) for pair in pairs]

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self.device.close()
