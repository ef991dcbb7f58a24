"""`CoreWatch`: calls of a driver leave the core as they found it: registers, masks, modes."""

from __future__ import annotations

import random
from collections.abc import Callable

from covp.chip.isa import ARCHITECTURES
from covp.device.abilities import Emulator
from covp.device.machine.engine import register_id
from covp.laboratory.calling_convention import kept_registers

_MSTATUS_MIE, _MSTATUS_FS = 1 << 3, 3 << 13
_MIE_OTHERS = 1 << 3 | 1 << 7
"""mie.MSIE and mie.MTIE: interrupts of the firmware, not of the unit; here none is pending."""
_FPCCR, _FPCCR_MODES = 0xE000EF34, 3 << 30
_CPACR, _CPACR_FPU = 0xE000ED88, 0xF << 20
"""ASPEN and LSPEN, which are set after a reset; full access, as start-up code gives it."""
_POINTERS = ("sp", "gp", "tp")
_PUT_BACK = "put back what it was before the function returns"
_MASKS = f"interrupts are masked, or let in, for good: {_PUT_BACK}"
_REMEDIES = {
    "sp": "pop as much as is pushed",
    **dict.fromkeys(("PRIMASK", "BASEPRI", "FAULTMASK", "mstatus.MIE", "mie"), _MASKS),
    **dict.fromkeys(("fpscr", "frm"), f"code after it rounds in another way: {_PUT_BACK}"),
    **dict.fromkeys(("CPACR", "FPCCR", "mstatus.FS"), f"a mode of the floats: {_PUT_BACK}"),
}
_SAVE = "save it, or name it among the clobbers of inline assembly"


class CoreWatch:
    """Compares the state of a core before and after a driver's function.

    The registers that a function keeps hold random values, so that a zero in their place shows.
    Interrupts are enabled as in firmware, or masked; none but the unit's can be pending.

    Args:
        device: of the driver.

    Attributes:
        masked: interrupts are masked when functions are called.
        wrong: the first difference that was found; empty: none. To be emptied before another run.
    """

    def __init__(self, device: Emulator) -> None:
        self.masked = False
        self.wrong = ""
        self._device, self._engine = device, device.core.engine
        self._random = random.Random(0)
        core = device.core.core
        self._is_arm, self._has_floats = core.architecture == "arm", core.has("fpu")
        masks = ("primask",) if core.isa.is_armv6m else ("primask", "basepri", "faultmask")
        names = masks if self._is_arm else ("mstatus", "mie")
        self._control = {name: register_id(core.architecture, name) for name in names}
        isa = ARCHITECTURES[core.architecture]
        kept = (*isa.kept, *(isa.kept_floats if self._has_floats else ()))
        self._kept = {name: register_id(isa.name, name) for name in kept}

    def over(self, function: str, call: Callable[[], object]) -> None:
        """Compare over a function.

        Args:
            function: its name.
            call: executes it, from its first instruction to its return.
        """
        own = {id: self._engine.reg_read(id) for id in self._kept.values()}
        for name, id in self._kept.items():
            if name not in _POINTERS:
                self._engine.reg_write(id, self._random.getrandbits(30))  # as a float, no NaN
        self._set_modes()
        before = self._state()
        call()
        self._compare(function, before, self._state())
        for id, value in own.items():  # the caller's
            self._engine.reg_write(id, value)

    def _set_modes(self) -> None:
        """Let interrupts in, or mask them; floats are on, as in firmware."""
        if self._is_arm:
            self._engine.reg_write(self._control["primask"], int(self.masked))
            if self._has_floats:
                for address, value in ((_FPCCR, _FPCCR_MODES), (_CPACR, _CPACR_FPU)):
                    self._device.board.write_bus(address, value.to_bytes(4, "little"))
            return
        status = self._engine.reg_read(self._control["mstatus"]) & ~_MSTATUS_MIE
        self._engine.reg_write(
            self._control["mstatus"], status | (0 if self.masked else _MSTATUS_MIE)
        )
        self._engine.reg_write(self._control["mie"], _MIE_OTHERS)

    def _state(self) -> dict[str, int]:
        """Return all that a function has to keep, by name."""
        found = {name: int(self._engine.reg_read(id)) for name, id in self._control.items()}
        if self._is_arm:
            found = {name.upper(): value for name, value in found.items()}
            if self._has_floats:
                found |= {"FPCCR": self._word(_FPCCR) & _FPCCR_MODES, "CPACR": self._word(_CPACR)}
        else:
            status = found.pop("mstatus")
            found["mstatus.MIE"] = status & _MSTATUS_MIE
            if self._has_floats:  # Initial, Clean and Dirty are all on
                found["mstatus.FS"] = int(bool(status & _MSTATUS_FS))
        return found | kept_registers(self._device)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._device.board.read_bus(address, 4), "little")

    def _compare(self, function: str, before: dict[str, int], after: dict[str, int]) -> None:
        for name, value in after.items():
            if value != before[name] and not self.wrong:
                self.wrong = (
                    f"{function} returned with 0x{value:x} in {name}, which was "
                    f"0x{before[name]:x} when it was called; {_REMEDIES.get(name, _SAVE)}"
                )
