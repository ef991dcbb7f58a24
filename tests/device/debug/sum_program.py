"""A program for a core's RAM: a loop with labels, an endless loop, a fault and a breakpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.chip.platform_file import load_platform
from tests.conftest import assemble

from .openocd_bench import OpenOcd


def places(ram: int) -> tuple[int, int, int]:
    """Where the code is, where the data are, and where the result is."""
    return ram + 0x4000, ram + 0x8000, ram + 0xA000


# Both sum the words at DATA, count in r1 or a1, and count their own rounds at RESULT + 4.
_ARM = """
start:
    ldr r0, ={data}
    ldr r3, ={result}
    movs r2, #0
loop:
    ldr r4, [r0]
    adds r0, #4
    adds r2, r2, r4
    subs r1, #1
    bne loop
store:
    str r2, [r3]
done:
    nop
forever:
    ldr r4, [r3, #4]
    adds r4, #1
    str r4, [r3, #4]
    b forever
bad:
    movw r4, #0
    movt r4, #0x7000
    ldr r4, [r4]
soft:
    nop
    bkpt #0
    .ltorg
"""
_RISCV = """
start:
    li a0, {data}
    li a3, {result}
    li a2, 0
loop:
    lw a4, 0(a0)
    addi a0, a0, 4
    add a2, a2, a4
    addi a1, a1, -1
    bnez a1, loop
store:
    sw a2, 0(a3)
done:
    nop
forever:
    lw a4, 4(a3)
    addi a4, a4, 1
    sw a4, 4(a3)
    j forever
bad:
    li a4, 0x50000000
    lw a4, 0(a4)
soft:
    nop
    ebreak
"""


@dataclass
class Program:
    """Code for RAM, and where its labels are."""

    image: Path
    code: int
    is_arm: bool
    labels: dict[str, int]

    def load(self, ocd: OpenOcd) -> None:
        ocd(f"load_image {self.image} {self.code}")

    def run(self, ocd: OpenOcd, label: str, **registers: int) -> None:
        state = {"xPSR": 0x01000000} if self.is_arm else {}
        for name, value in {**state, **registers}.items():
            ocd(f"set_reg {{{name} {value}}}")
        ocd(f"resume {self.labels[label]}")


def sum_program(platform: str, folder: Path) -> Program:
    """The program in the RAM of a platform, its image in the folder."""
    chosen = load_platform(platform)
    code, data, result = places(chosen.ram.start)
    is_arm = chosen.core.architecture == "arm"
    text = (_ARM if is_arm else _RISCV).format(data=data, result=result)
    elf, _ = assemble(platform, text, code)
    with elf.open("rb") as stream:
        content = ELFFile(stream)
        section, table = (content.get_section_by_name(name) for name in (".text", ".symtab"))
        assert isinstance(table, SymbolTableSection) and section is not None
        image = folder / "sum.bin"
        image.write_bytes(section.data())
        labels = {s.name: s["st_value"] & ~1 for s in table.iter_symbols()}
        return Program(image, code, is_arm, labels)
