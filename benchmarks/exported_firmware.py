"""Exported firmware of the MLPerf Tiny models: right, as many instructions, no larger than TFLM's.

    python benchmarks/exported_firmware.py [--models M] [--platforms P] [--devices virtual qemu rtl]

Each model is exported for each platform, alone and with an accelerator, with both compilers. The
ELF file that the project's Makefile makes runs from reset: on the virtual board, whose inference
has to take exactly the instructions of `covp run`, on QEMU where a machine fits, and on the
core's own RTL. On a Cortex-M0+ ten instructions in 2**24 cycles are the cycle counter's. Flash
and arena stand beside TFLM's (`benchmarks/anchors.py`); the flash is that of `--optimize balanced`,
self-test and printing included. Exits with 1 where anything falls short.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from anchors import ANCHORS
from elftools.elf.elffile import ELFFile

from covp.chip.platform_file import Platform, load_platform
from covp.compilers.elf import ElfImage
from covp.errors import CovpError
from covp.evaluation import build, recorded_schedules
from covp.firmware import Project, link_project
from covp.runtime.accelerators import attach_accelerator
from covp.runtime.devices import open_device

MODELS = ("toycar", "kws", "resnet", "vww", "sww")
PLATFORMS = ("stm32l4r5", "stm32f746", "cortex-m0plus", "riscv32", "cv32e40p")
ACCELERATORS: tuple[tuple[str, ...], ...] = ((), ("gemm",))
FURTHER = {"qemu": ("mps2-an386", "mps2-an500", "qemu-riscv32"), "rtl": ("cv32e40p",)}
"""The platforms that have a machine, or Verilog."""


def pieces(elf: bytes) -> Iterator[tuple[int, bytes]]:
    """What a programmer stores: address and content."""
    for segment in ELFFile(io.BytesIO(elf)).iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
            yield segment["p_paddr"], segment.data()


def run_on(project: Project, elf: bytes, device_name: str) -> tuple[int, int | None]:
    """The status of main, and the instructions of the inference where the device counts them."""
    program = project.program
    symbols = ElfImage(elf).symbols
    reset, end = symbols["covp_reset"].address, symbols["covp_exit"].address
    device = open_device(device_name, program.platform)
    try:
        hardware = device.abilities.hardware
        for accelerator in program.accelerators:
            assert hardware is not None
            attach_accelerator(hardware, accelerator)
        for address, content in pieces(elf):
            device.write(address, content)
        instructions = None
        if device.abilities.phases is not None:
            # control comes back to the caller somewhere in it
            caller = symbols[f"{program.name}_invoke"]
            back = [(a, 0) for a in range(caller.address, caller.address + caller.size, 2)]
            device.abilities.phases.set_phases([(symbols[program.run_function].address, 1), *back])
            stop = device.execute(reset, end)
            instructions = stop.phases[1].instructions
        else:
            device.execute(reset, end)
        status = device.read(symbols["covp_exit_status"].address, 4)
        return int.from_bytes(status, "little", signed=True), instructions
    finally:
        if device.abilities.closing is not None:
            device.abilities.closing.close()


class Case:
    """One row: a model on a platform, with accelerators and a compiler."""

    def __init__(
        self, model: str, platform: Platform, accelerators: tuple[str, ...], toolchain: str
    ) -> None:
        schedules = recorded_schedules(platform, toolchain=toolchain, optimize="balanced")
        made = build(model, platform, accelerators, toolchain=toolchain, schedules=schedules)
        self.model, self.platform = model, platform
        self.what = f"{model} {platform.name} {' '.join(accelerators) or '-'} {toolchain}"
        self.project = Project.of(made)
        self.elf = link_project(self.project).read_bytes()
        self.flash = sum(len(content) for _, content in pieces(self.elf))
        self.problems: list[str] = []

    def check(self, device: str) -> str:
        """Run it; what happened, short."""
        try:
            status, instructions = run_on(self.project, self.elf, device)
        except CovpError as error:
            self.problems.append(str(error))
            return "failed"
        profile = self.project.simulated.profile
        simulated, cycles = profile.instructions, profile.cycles
        assert simulated is not None and cycles is not None
        if status != 0:
            self.problems.append(f"{device}: status {status}")
        interrupts = 0
        if self.platform.core.name == "cortex-m0plus":  # SysTick counts its cycles, and wraps
            interrupts = (cycles >> 24) + 1
        if instructions is not None and not 0 <= instructions - simulated <= 10 * interrupts:
            self.problems.append(f"{device}: {instructions} instructions, simulated {simulated}")
        return "pass" if status == 0 else f"status {status}"

    def sizes(self) -> str:
        """Flash and arena, and those of TFLM."""
        program = self.project.program
        anchor = ANCHORS.get(self.platform.core.name, ANCHORS["rv32imc"])[self.model]
        if program.arena_bytes > anchor.arena:
            self.problems.append(f"arena {program.arena_bytes} above TFLM's {anchor.arena}")
        if self.flash > anchor.flash:
            self.problems.append(f"flash {self.flash} above TFLM's {anchor.flash}")
        return (
            f"flash {self.flash:>7,} of {anchor.flash:,}  "
            f"arena {program.arena_bytes:>6,} of {anchor.arena:,}"
        )


def cases(models: list[str], platforms: list[str]) -> Iterator[Case]:
    """All that can be built here."""
    for model in models:
        for name in platforms:
            platform = load_platform(name)
            for accelerators in ACCELERATORS:
                for toolchain in ("zig", "gcc"):
                    found = shutil.which(f"{platform.core.gcc_prefix}gcc")
                    if toolchain == "zig" or found:
                        yield Case(model, platform, accelerators, toolchain)


def main() -> int:
    """Print one row a case; the number of cases with a problem."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--platforms", nargs="+", default=list(PLATFORMS))
    parser.add_argument("--devices", nargs="+", default=["virtual", "qemu", "rtl"])
    chosen = parser.parse_args()
    count = wrong = 0
    if "virtual" in chosen.devices:
        for case in cases(chosen.models, chosen.platforms):
            count += 1
            verdict = case.check("virtual")
            instructions = case.project.simulated.profile.instructions
            print(f"{case.what:<32} {verdict}  {instructions:>11,} instructions  {case.sizes()}")
            wrong += bool(case.problems)
            print("".join(f"    {problem}\n" for problem in case.problems), end="", flush=True)
    for device in ("qemu", "rtl"):
        if device not in chosen.devices:
            continue
        for case in cases(chosen.models, list(FURTHER[device])):
            if case.project.program.accelerators and device == "qemu":
                continue  # QEMU has none of them
            count += 1
            name = "gdb:qemu" if device == "qemu" else device
            print(f"{case.what:<32} {device}: {case.check(name)}", flush=True)
            wrong += bool(case.problems)
            print("".join(f"    {problem}\n" for problem in case.problems), end="", flush=True)
    print(f"{count} cases, {wrong} with a problem")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
