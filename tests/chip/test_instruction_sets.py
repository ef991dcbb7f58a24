"""What is said once of an instruction set, held against the assembler and the emulator."""

from __future__ import annotations

import io

import pytest
from elftools.elf.elffile import ELFFile

from covp.chip.isa import ARCHITECTURES, Isa
from covp.chip.isa.riscv import COUNTER_CSRS, FLOAT_CSRS, IDENTITY_CSRS, MISA, STATE_CSRS
from covp.device.machine.engine import register_id
from tests.conftest import assemble


def words(platform: str, lines: list[str], size: int) -> list[int]:
    """The encodings of instructions of so many bytes."""
    elf, _ = assemble(platform, ".text\n" + "\n".join(lines))
    section = ELFFile(io.BytesIO(elf.read_bytes())).get_section_by_name(".text")
    assert section is not None
    code = section.data()[: size * len(lines)]
    return [int.from_bytes(code[at : at + size], "little") for at in range(0, len(code), size)]


@pytest.mark.process
def test_numbers_of_riscv_registers_are_those_of_the_encodings() -> None:
    riscv = ARCHITECTURES["riscv"]
    lines = [".option norvc", *(f"lui {name}, 1" for name in riscv.registers)]
    lines += [f"flw {name}, 0(t0)" for name in riscv.floats]
    found = words("riscv32f", lines, 4)[: 2 * 32]
    assert [word >> 7 & 31 for word in found] == [*range(32), *range(32)]


@pytest.mark.process
def test_numbers_of_arm_registers_are_those_of_the_encodings() -> None:
    arm = ARCHITECTURES["arm"]
    found = words("cortex-m4", [f"mov r0, {name}" for name in arm.registers], 2)
    assert [word >> 3 & 15 for word in found] == list(range(16))


@pytest.mark.process
def test_numbers_of_riscv_csrs() -> None:
    named = {**FLOAT_CSRS, **STATE_CSRS, **COUNTER_CSRS, **IDENTITY_CSRS, MISA: "misa"}
    found = words("riscv32", [f"csrr t0, {name}" for name in named.values()], 4)
    assert [word >> 20 for word in found] == list(named)


@pytest.mark.parametrize("name", ["arm", "riscv"])
def test_the_emulator_has_each_register_once(name: str) -> None:
    isa = ARCHITECTURES[name]
    names = (*isa.shown, *isa.floats)
    assert len({register_id(name, register) for register in names}) == len(names)
    assert {*isa.kept, *isa.scratch, *isa.arguments} <= {*isa.registers}
    assert {*isa.kept_floats} <= {*isa.floats}
    assert isa.registers[isa.sp] == "sp" and isa.registers[isa.link] in ("lr", "ra")
    assert not {*isa.kept} & {*isa.scratch, *isa.arguments}


@pytest.mark.parametrize("text", ["rv32imc", "rv32i", "armv6-m", "armv7e-m+dsp+fpu", "x86-64+fpu"])
def test_a_name_is_read_as_it_is_written(text: str) -> None:
    assert Isa.parse(text).name == text
