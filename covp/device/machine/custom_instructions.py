"""Custom instructions of an emulated RISC-V core, executed by compiled functions of the host."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unicorn.unicorn_py3.unicorn import Uc

from covp.chip.cores import Core
from covp.device.machine.counter import Counter
from covp.device.machine.instruction_code import (
    CustomUnit,
    find_unit,
    make_custom_unit,
    raise_error,
)
from covp.device.machine.register_file import find_registers
from covp.errors import AcceleratorError, DeviceError
from covp.hardware.bus import Memory
from covp.hardware.custom_instruction import CustomInstruction, InstructionCode
from covp.hardware.custom_instruction import InstructionUnit as InstructionUnit  # its old place

_MASK = 0xFE00707F
_MOST_NUMBERS = 4095
_LONGEST_RUN, _MOST_QUIET_CYCLES = 32, 100
"""Limits that keep the counts of a block of custom instructions below 16 bits."""
_LOOK_AHEAD = 4096
"""Bytes of straight-line code that are searched at once."""
_ILLEGAL_INSTRUCTION = 2


@dataclass(frozen=True)
class CustomState:
    """The content of a `CustomInstructions.save_state`.

    Attributes:
        units: name to the instructions and the state of a unit.
        patched: address to the instruction that was patched out there.
        uses: the counter's number of an instruction to how often it retired.
    """

    units: dict[str, tuple[tuple[CustomInstruction, ...], bytes]]
    patched: dict[int, int]
    uses: dict[int, int]


def _leaves(bits: int) -> bool:
    """Return whether control never goes on after an instruction, or it is none (0).

    JAL and JALR that link nothing, C.J, C.JR and whatever is SYSTEM: ISA chapters 2 and 16.
    """
    if bits & 3 == 3:
        jump = bits & 0x7F in (0x6F, 0x67) and bits >> 7 & 31 == 0
        return jump or bits & 0x7F == 0x73
    half = bits & 0xFFFF
    return half == 0 or half & 0xE003 == 0xA001 or half & 0xF07F == 0x8002


class CustomInstructions:
    """The custom instructions of one emulated core.

    An instruction stays as it is in memory until it, or straight-line code before it, is executed
    for the first time. Then the emulator rejects it, and `meet` replaces it by a word from which
    the counter knows what to execute (custom.h). `original` returns the bytes as the program wrote
    them; only the emulated program itself, and bus masters, see the patch. A copy they make of
    whole functions works. A program that stores over one of several in a row loses those before it
    in that row; where the host writes, `restore` prevents that.

    Args:
        core: only RISC-V cores can have any.
        engine: the core.
        counter: executes them.
        memories: where code is.
    """

    def __init__(
        self,
        core: Core,
        engine: Uc,
        counter: Counter,
        memories: Sequence[Memory],
    ) -> None:
        self._core, self._engine, self._counter = core, engine, counter
        self._memories = memories
        self._units: dict[str, CustomUnit] = {}
        self._by_match: dict[int, tuple[CustomUnit, CustomInstruction]] = {}
        self._numbers: dict[int, int] = {}
        self._places: list[int] = []
        self._bits: dict[int, int] = {}

    def add(
        self,
        unit_name: str,
        instructions: Sequence[CustomInstruction],
        code: Callable[[], InstructionCode] | None = None,
    ) -> None:
        """Add a unit; see `VirtualDevice.add_instructions`."""
        if self._core.architecture != "riscv":
            raise DeviceError(
                f"unit {unit_name}: a {self._core.name} has no custom instructions; "
                "choose a platform with a RISC-V core"
            )
        if unit_name in self._units:
            raise DeviceError(f"unit {unit_name} already exists; remove it first")
        taken = {i.match: f"{i.name} of {name}" for name, u in self._units.items()
                 for i in u.instructions}  # fmt: skip
        names: set[str] = set()
        for new in instructions:
            if new.match in taken:
                raise AcceleratorError(
                    f"unit {unit_name}: {new.name} has the encoding of {taken[new.match]}; "
                    "give it another funct3 or funct7"
                )
            if new.name in names:
                raise AcceleratorError(f"unit {unit_name}: two instructions are called {new.name}")
            names.add(new.name)
            taken[new.match] = new.name
        unit = make_custom_unit(unit_name, instructions, code)
        if not self._counter.state.registers:
            self._counter.state.registers = find_registers(self._engine)
        self._units[unit_name] = unit
        self._update_encodings(unit)

    def remove(self, unit_name: str) -> None:
        """Remove a unit; see `VirtualDevice.remove_instructions`."""
        unit = self._unit(unit_name)
        del self._units[unit_name]
        self._update_encodings(unit)

    def uses(self, unit_name: str) -> dict[str, int]:
        """Return the executions of each instruction of a unit since it was added."""
        return {
            instruction.name: sum(
                self._counter.custom_uses(number)
                for bits, number in self._numbers.items()
                if bits & _MASK == instruction.match
            )
            for instruction in self._unit(unit_name).instructions
        }

    def reset(self) -> None:
        """Clear the state of all units."""
        for unit in self._units.values():
            unit.code.reset()

    def raise_error(self) -> None:
        """Raise AcceleratorError if a call of an instruction went wrong."""
        raise_error(self._units)

    def save_state(self) -> CustomState:
        """Return the units' state and the patched addresses; memory has the patches."""
        return CustomState(
            {name: (u.instructions, u.code.save_state()) for name, u in self._units.items()},
            dict(self._bits),
            {number: self._counter.custom_uses(number) for number in self._numbers.values()},
        )

    def load_state(self, state: CustomState) -> None:
        """Go back to a saved state, memory included.

        Raises:
            DeviceError: other units were there when it was saved.
        """
        if not (self._units or self._numbers or state.units):
            return
        saved = {name: instructions for name, (instructions, _) in state.units.items()}
        if saved != {name: unit.instructions for name, unit in self._units.items()}:
            raise DeviceError(
                f"the state was saved with the units {', '.join(saved) or 'none'} of custom "
                f"instructions, now there are: {', '.join(self._units) or 'none'}"
            )
        for name, (_, words) in state.units.items():
            self._units[name].code.load_state(words)
        self._bits = dict(state.patched)
        self._places = sorted(self._bits)
        for number in self._numbers.values():
            self._counter.set_custom_uses(number, state.uses.get(number, 0))

    def _unit(self, name: str) -> CustomUnit:
        return find_unit(self._units, name)

    def _find(self, bits: int) -> tuple[CustomUnit, CustomInstruction] | None:
        return self._by_match.get(bits & _MASK)

    def _update_encodings(self, unit: CustomUnit) -> None:
        """Update encodings after a unit came or went: its patched instructions have changed."""
        self._by_match = {
            instruction.match: (there, instruction)
            for there in self._units.values()
            for instruction in there.instructions
        }
        matches = {instruction.match for instruction in unit.instructions}
        for bits in self._numbers:
            if bits & _MASK in matches:
                self._attach(bits)
        self._counter.decode_again()

    def _attach(self, bits: int) -> int:
        found = self._find(bits)
        if found is None:
            return self._counter.set_custom(bits, 0, None, None)
        unit, instruction = found
        return self._counter.set_custom(
            bits, instruction.cycles, unit.code.function(instruction), unit.code.state
        )

    def meet(self, address: int, exception: int) -> bool:
        """Return whether the instruction that the emulator rejected at an address is a custom one.

        If so it will be executed when the core goes on from there.
        """
        if exception != _ILLEGAL_INSTRUCTION or not self._units:
            return False
        if self._find(self._counter.opcode(address)) is None:
            return False
        end = self._patch_from(address)
        self._engine.ctl_remove_cache(address, end)
        return True

    def _patch_from(self, address: int) -> int:
        """Patch the instruction and those after it in straight-line code; the end of that.

        One by one they would cost an exception each. After a jump there may be data.
        """
        start, run = address, 0
        while address < start + _LOOK_AHEAD:
            bits = self._counter.opcode(address)
            if self._find(bits) is not None:
                full = len(self._numbers) == _MOST_NUMBERS and bits not in self._numbers
                if full and address != start:
                    break  # it may never be executed
                run += 1
                quiet = run % _LONGEST_RUN != 0 and self._may_be_quiet(address, bits)
                self._patch(address, bits, quiet)
            else:
                run = 0
                if _leaves(bits):
                    break
            address += 4 if bits & 3 == 3 else 2
        return address

    def _may_be_quiet(self, address: int, bits: int) -> bool:
        """Return whether an instruction writes no register and another one follows it."""
        found, following = self._find(bits), self._counter.opcode(address + 4)
        assert found is not None
        if bits >> 7 & 31 or found[1].cycles > _MOST_QUIET_CYCLES or self._find(following) is None:
            return False
        # that one has to be patched as well
        return following in self._numbers or len(self._numbers) + 1 < _MOST_NUMBERS

    def _patch(self, address: int, bits: int, quiet: bool) -> None:
        if bits not in self._numbers:
            self._numbers[bits] = self._attach(bits)
        if address not in self._bits:
            bisect.insort(self._places, address)
        self._bits[address] = bits
        self._store(address, self._counter.patch(self._numbers[bits], quiet))

    def original(self, address: int, data: bytes) -> bytes:
        """Return bytes read from memory, as the program wrote them."""
        for place in self._patches_in(address, len(data)):
            whole = bytearray(data)
            for at, byte in enumerate(self._bits[place].to_bytes(4, "little"), place - address):
                if 0 <= at < len(whole):
                    whole[at] = byte
            data = bytes(whole)
        return data

    def restore(self, address: int, size: int) -> None:
        """Take the patches out of memory that is about to be written.

        Those directly before go too: they may rely on one that follows.
        """
        while address - 4 in self._bits:
            address, size = address - 4, size + 4
        for place in self._patches_in(address, size):
            self._store(place, self._bits.pop(place))
            self._places.remove(place)

    def _patches_in(self, address: int, size: int) -> list[int]:
        first = bisect.bisect_right(self._places, address - 4)
        last = bisect.bisect_left(self._places, address + size)
        return [place for place in self._places[first:last] if self._is_patched(place)]

    def _is_patched(self, place: int) -> bool:
        number, word = self._numbers[self._bits[place]], self._memory(place).read(place, 4)
        patches = (self._counter.patch(number, quiet) for quiet in (False, True))
        return any(word == patch.to_bytes(4, "little") for patch in patches)

    def _store(self, address: int, bits: int) -> None:
        self._memory(address).write(address, bits.to_bytes(4, "little"))

    def _memory(self, address: int) -> Memory:
        for memory in self._memories:
            if memory.region.holds(address):
                return memory
        raise DeviceError(f"no code at 0x{address:08x}")
