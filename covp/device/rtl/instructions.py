"""`RtlInstructions`: units of custom instructions on a core's port for them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from covp.device.machine.custom_unit import CustomUnit
from covp.device.rtl.cores import RtlCore
from covp.device.rtl.model import RtlModel
from covp.errors import DeviceError
from covp.hardware.custom_instruction import CustomInstruction

_CUSTOM_0 = 0x0B


class RtlInstructions:
    """The units of one core.

    The port takes instructions of opcode custom-0, numbered by funct7 and funct3.

    Args:
        name: of the core, for messages.
        core: whether it has the port.
        model: the core.
    """

    def __init__(self, name: str, core: RtlCore, model: RtlModel) -> None:
        self._name, self._core, self._model = name, core, model
        self._units: dict[str, CustomUnit] = {}

    def add(self, unit_name: str, instructions: Sequence[CustomInstruction]) -> None:
        """Add a unit; see `RtlDevice.add_instructions`."""
        if not self._core.custom_instructions:
            raise DeviceError(
                f"unit {unit_name}: the RTL of {self._name} has no port for custom instructions; "
                "take the platform vexriscv-cfu, or device virtual"
            )
        if unit_name in self._units:
            raise DeviceError(f"unit {unit_name} already exists; remove it first")
        taken = {_number(i) for unit in self._units.values() for i in unit.instructions}
        for new in instructions:
            if new.opcode != _CUSTOM_0:
                raise DeviceError(
                    f"unit {unit_name}: {new.name} has opcode 0x{new.opcode:02x}; the port takes "
                    f"custom-0, 0x{_CUSTOM_0:02x}, alone"
                )
            if _number(new) in taken:
                raise DeviceError(f"unit {unit_name}: the encoding of {new.name} is taken")
            taken.add(_number(new))
        unit = CustomUnit(unit_name, instructions)
        self._units[unit_name] = unit
        state = ctypes.addressof(unit.state)
        for new in instructions:
            self._model.set_instruction(_number(new), unit.function(new), state, new.cycles)

    def remove(self, unit_name: str) -> None:
        """Remove a unit; see `RtlDevice.remove_instructions`."""
        for old in self._unit(unit_name).instructions:
            self._model.set_instruction(_number(old), 0, 0, 0)
        del self._units[unit_name]

    def uses(self, unit_name: str) -> Mapping[str, int]:
        """Return the executions of each instruction of a unit."""
        return {i.name: self._model.uses(_number(i)) for i in self._unit(unit_name).instructions}

    def reset(self) -> None:
        """Clear the state of all units."""
        for unit in self._units.values():
            ctypes.memset(unit.state, 0, ctypes.sizeof(unit.state))

    def save_state(self) -> dict[str, bytes]:
        """Return the state of each unit."""
        return {name: bytes(unit.state) for name, unit in self._units.items()}

    def load_state(self, state: Mapping[str, bytes]) -> None:
        """Go back to a saved state. Raises DeviceError: there are other units now."""
        if set(state) != set(self._units):
            raise DeviceError(
                f"the state was saved with the units {', '.join(state) or 'none'} of custom "
                f"instructions, now there are: {', '.join(self._units) or 'none'}"
            )
        for name, words in state.items():
            ctypes.memmove(self._units[name].state, words, len(words))

    def _unit(self, name: str) -> CustomUnit:
        if name not in self._units:
            there = ", ".join(self._units) or "none"
            raise DeviceError(f"no unit {name!r} of custom instructions; there are: {there}")
        return self._units[name]


def _number(instruction: CustomInstruction) -> int:
    return instruction.funct7 << 3 | instruction.funct3
