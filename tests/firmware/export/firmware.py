"""Exported firmware on the virtual board: what it prints, and what its inference costs."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from elftools.elf.elffile import ELFFile

from covp.codegen.program import Program
from covp.compilers.elf import ElfImage
from covp.device.virtual import VirtualDevice
from covp.runtime.accelerators import attach_accelerator


@dataclass(frozen=True)
class Ran:
    """One run of firmware from reset to the end.

    Attributes:
        status: what main returned.
        text: what it printed.
        instructions, cycles: of the inference alone.
    """

    status: int
    text: str
    instructions: int
    cycles: int


def _program(device: VirtualDevice, elf: bytes) -> None:
    """Write an ELF file to the addresses that a programmer writes."""
    for segment in ELFFile(io.BytesIO(elf)).iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
            device.write(segment["p_paddr"], segment.data())


def last_line(program: Program, elf: bytes) -> str:
    """What firmware without accelerators prints last, whether or not it comes to an inference."""
    with VirtualDevice(program.platform) as device:
        _program(device, elf)
        symbols = ElfImage(elf).symbols
        device.execute(symbols["covp_reset"].address, symbols["covp_exit"].address)
        ports: list[Any] = [m for _, m in device.peripherals.values() if hasattr(m, "text")]
        return "".join(port.text for port in ports).splitlines()[-1]


def run_firmware(program: Program, elf: bytes) -> Ran:
    """Run an ELF file on the program's platform, with its accelerators."""
    with VirtualDevice(program.platform) as device:
        for accelerator in program.accelerators:
            attach_accelerator(device.board, accelerator)
        _program(device, elf)
        symbols = ElfImage(elf).symbols
        infer = symbols[program.run_function].address
        device.execute(symbols["covp_reset"].address, infer)
        back = device.core.read_register(
            "lr" if program.platform.core.architecture == "arm" else "ra"
        )
        stop = device.execute(infer, back)
        device.execute(back, symbols["covp_exit"].address)
        status = device.read(symbols["covp_exit_status"].address, 4)
        ports: list[Any] = [m for _, m in device.peripherals.values() if hasattr(m, "text")]
        text = "".join(port.text for port in ports)
        assert stop.instructions is not None and stop.cycles is not None
        return Ran(
            int.from_bytes(status, "little", signed=True), text, stop.instructions, stop.cycles
        )
