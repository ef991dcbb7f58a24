"""`InstructionLog`: the custom instructions that a program executed, for their Python model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.device.machine.custom_unit import CustomUnit
from covp.hardware.custom_instruction import CustomInstruction, InstructionUnit

_LENGTH = 4096
"""Instructions that are kept: the first ones since `clear`."""
_LOG = f"""
#ifndef COVP_LOG
#define COVP_LOG
EXPORT uint32_t covp_log_count, covp_log[{_LENGTH}][4];
static uint32_t covp_logged(uint32_t which, uint32_t a, uint32_t b, uint32_t result) {{
if (covp_log_count < {_LENGTH}) {{
uint32_t *entry = covp_log[covp_log_count++];
entry[0] = which, entry[1] = a, entry[2] = b, entry[3] = result; }}
return result; }}
#endif
"""


class _Logged(CustomInstruction):
    """An instruction whose C writes down what it did."""

    position: int = 0

    @property
    def source(self) -> str:
        """The instruction's own function under another name, and one that calls it."""
        plain = super().source.replace("EXPORT uint32_t ", "static uint32_t plain_", 1)
        return (
            f"{_LOG}{plain}"
            f"EXPORT uint32_t covp_{self.name}(uint32_t a, uint32_t b, CfuState *state) {{\n"
            f"return covp_logged({self.position}, a, b, plain_covp_{self.name}(a, b, state)); }}\n"
        )


class InstructionLog:
    """A unit in the core whose instructions are written down, and compared with their model.

    Args:
        backend: of the unit; `model` makes its Python model anew.

    Attributes:
        unit: the same instructions, to be given to a device.
    """

    def __init__(self, backend: AcceleratorBackend) -> None:
        self._model: Callable[[], InstructionUnit] = lambda: _made(backend)
        logged = []
        for position, given in enumerate(self._model().instructions):
            fields = {name: getattr(given, name) for name in given.__dataclass_fields__}
            instruction = _Logged(**fields)
            object.__setattr__(instruction, "position", position)
            logged.append(instruction)
        self.unit = replace(self._model(), instructions=tuple(logged))
        # the same source is the same library, so these are the device's own variables
        library = CustomUnit(backend.name, self.unit.instructions).library
        self._count = ctypes.c_uint32.in_dll(library, "covp_log_count")
        self._entries = (ctypes.c_uint32 * 4 * _LENGTH).in_dll(library, "covp_log")

    def clear(self) -> None:
        """Begin anew; the unit's state has to be zero."""
        self._count.value = 0

    def difference(self) -> str:
        """Describe the first instruction since `clear` for which model and C differ, or ""."""
        instructions = self._model().instructions
        for which, a, b, result in self._entries[: self._count.value]:
            instruction = instructions[which]
            wanted = int(instruction.compute(a, b)) & 0xFFFFFFFF
            if wanted != result:
                return (
                    f"{instruction.name}(0x{a:x}, 0x{b:x}) is 0x{wanted:x} by compute and "
                    f"0x{result:x} by native"
                )
        return ""


def _made(backend: AcceleratorBackend) -> InstructionUnit:
    unit = new_peripheral(backend)
    assert isinstance(unit, InstructionUnit)
    return unit
