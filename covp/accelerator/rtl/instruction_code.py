"""`RtlInstructionCode`: custom instructions that the Verilog of their unit executes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from covp.hardware.custom_instruction import CfuState, CustomInstruction


class RtlInstructionCode:
    """A unit's RTL in simulation, as an `InstructionCode`.

    A core that calls its functions waits for as many cycles as the RTL takes. Between two
    instructions the RTL's clock goes on with the core's.

    Args:
        library: made by `build_instructions`.
        instructions: of the unit.
    """

    def __init__(self, library: Path, instructions: Sequence[CustomInstruction]) -> None:
        self._library = _open_library(library)
        self._unit: int | None = self._library.covp_unit_new()
        self._shared = CfuState(unit=self._unit)
        self.state = ctypes.addressof(self._shared)
        for one in instructions:
            self._library.covp_unit_set_cycles(self._unit, one.number, one.cycles)

    def __del__(self) -> None:
        if getattr(self, "_unit", None) is not None:
            self._library.covp_unit_delete(self._unit)
            self._unit = None

    @property
    def clocked(self) -> tuple[int, int, int]:
        """The addresses of the unit and of its functions ``settle`` and ``edge``."""
        assert self._unit is not None
        settle, edge = self._library.covp_unit_settle, self._library.covp_unit_edge
        return self._unit, _address(settle), _address(edge)

    def function(self, instruction: CustomInstruction) -> int:
        """Return the host address of an instruction's function."""
        return int(self._library.covp_unit_function(instruction.number))

    def set_stalls(self, seed: int) -> None:
        """Let the core be too busy by chance to take an answer at once; 0: it never is."""
        self._library.covp_unit_set_stalls(self._unit, seed)

    def reset(self) -> None:
        """Reset the unit; it forgets all."""
        self._library.covp_unit_reset(self._unit)

    def save_state(self) -> bytes:
        """Return the unit's registers and memories."""
        size = ctypes.c_uint64()
        data = self._library.covp_unit_save(self._unit, ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    def load_state(self, state: bytes) -> None:
        """Go back to what `save_state` returned."""
        self._library.covp_unit_load(self._unit, state, len(state))

    def error(self) -> str:
        """Return why the unit did not answer, in one line; "": it did."""
        return bytes(self._library.covp_unit_error(self._unit)).decode()


def _address(function: object) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert address is not None
    return address


def _open_library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, word, long = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    for name, result, arguments in (
        ("new", handle, ()),
        ("delete", None, (handle,)),
        ("function", handle, (word,)),
        ("set_cycles", None, (handle, word, word)),
        ("set_stalls", None, (handle, word)),
        ("reset", word, (handle,)),
        ("settle", None, (handle, handle)),
        ("edge", None, (handle,)),
        ("error", ctypes.c_char_p, (handle,)),
        ("save", handle, (handle, ctypes.POINTER(long))),
        ("load", None, (handle, ctypes.c_char_p, long)),
    ):
        function = library[f"covp_unit_{name}"]
        setattr(library, f"covp_unit_{name}", function)
        function.restype, function.argtypes = result, arguments
    return library
