"""`Nvic`: exceptions of a Cortex-M, from pending to return.

Sources: Arm DDI0403E (ARMv7-M) B1.5 for entry, return and priorities, B3.4 for the registers;
DDI0419E for ARMv6-M. Not modelled: lazy stacking (the floating-point registers are saved at once),
sleep-on-exit, subpriorities beyond their order, the security extension.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from unicorn.unicorn_py3.unicorn import Uc

from covp.device.machine.engine import register_id
from covp.errors import DeviceFault
from covp.hardware.bus import Bus

PENDSV, SYSTICK = 14, 15
FIRST_LINE = 16
LINES = 240
ARMV6M_LINES = 32
_LOWEST = 256  # priority of thread mode
_EXC_RETURN = 0xFFFFFFE0
_NO_FLOATS, _THREAD, _PROCESS_STACK = 1 << 4, 1 << 3, 1 << 2
_XPSR_ALIGNED, _XPSR_THUMB, _IT_BITS = 1 << 9, 1 << 24, 0x0600FC00
_FPCA, _SPSEL = 1 << 2, 1 << 1
_FRAME = struct.Struct("<8I")
_FLOAT_FRAME = struct.Struct("<18I")  # s0-s15, fpscr and a gap
_SAVED = ("R0", "R1", "R2", "R3", "R12", "LR")


@dataclass(frozen=True)
class _Frame:
    """The words that exception entry saves, their stack and address, and EXC_RETURN."""

    stack: str
    address: int
    data: bytes
    xpsr: int
    exc_return: int


class Nvic:
    """Pending, active and enabled exceptions of one core, and the way in and out of handlers.

    Args:
        engine: of the core.
        bus: where stacks and the vector table are.
        vector_table: its address after a reset.
        priority_bits: implemented of eight, the upper ones: 2 on ARMv6-M, usually 4 else.
        entry_cycles: from the last instruction to the first of the handler.
        has_fpu: whether floating-point registers may have to be saved.
    """

    def __init__(
        self,
        engine: Uc,
        bus: Bus,
        vector_table: int,
        priority_bits: int,
        entry_cycles: int,
        has_fpu: bool,
    ) -> None:
        self._engine, self._bus = engine, bus
        self._mask = 0x100 - (1 << (8 - priority_bits))
        self._has_masks = priority_bits > 2  # ARMv6-M has neither BASEPRI nor FAULTMASK
        self.entry_cycles = entry_cycles
        self._has_fpu = has_fpu
        self.vector_table = vector_table
        self.priority_group = 0
        self.cycles_spent = 0
        self.on_entry: Callable[[int, int], None] | None = None
        self.on_return: Callable[[], None] | None = None
        self.on_frame: Callable[[int, int, bool], None] | None = None
        self.reset()

    def reset(self) -> None:
        """Reset: nothing is pending, active or enabled; thread mode on the main stack."""
        self.pending: set[int] = set()
        self.active: list[int] = []
        self.enabled: set[int] = set()
        self.levels: set[int] = set()
        self.priorities: dict[int, int] = {}

    # -- lines and registers ------------------------------------------------------------------

    def set_line(self, number: int, level: bool) -> None:
        """Set a level-sensitive request line: the exception number less 16.

        Once up it is latched: only entry or a write of ICPR ends its being pending.
        """
        exception = number + FIRST_LINE
        if level:
            self.levels.add(exception)
            self.pending.add(exception)
        else:
            self.levels.discard(exception)

    def pulse(self, number: int) -> None:
        """Make an interrupt pending once."""
        self.pending.add(number + FIRST_LINE)

    def set_priority(self, exception: int, value: int) -> None:
        """Set a priority: 0 is the most urgent; bits that are not implemented read as 0."""
        self.priorities[exception] = value & self._mask

    def priority(self, exception: int) -> int:
        """Return the priority that was set; negative for exceptions whose priority is fixed."""
        return {1: -3, 2: -2, 3: -1}.get(exception, self.priorities.get(exception, 0))

    def wakes(self) -> bool:
        """Return whether WFI ends: an exception would preempt, were PRIMASK clear."""
        exception = self._first()
        return exception is not None and self._group(exception) < self._running_priority(
            masked=False
        )

    # -- entry and return ---------------------------------------------------------------------

    def preempts(self) -> bool:
        """Return whether the most urgent pending exception interrupts the running code."""
        exception = self._first()
        return exception is not None and self._group(exception) < self._running_priority()

    def take(self, pc: int) -> int:
        """Enter the most urgent pending exception if it preempts; the pc to go on from."""
        exception = self._first()
        if exception is None or not self.preempts():
            return pc
        self.pending.discard(exception)
        if self.on_entry is not None:
            self.on_entry(exception - FIRST_LINE, pc)
        return self.enter(exception, pc)

    def enter(self, exception: int, pc: int) -> int:
        """Enter an exception: push the frame, set lr to EXC_RETURN, switch to handler mode."""
        frame = self._frame(pc)
        try:
            self._bus.write(frame.address, frame.data)
            vector = int.from_bytes(self._bus.read(self.vector_table + 4 * exception, 4), "little")
        except DeviceFault as fault:
            fault.detail = f"while exception {exception} was entered: {fault.detail}"
            fault.pc = pc
            raise
        if self.on_frame is not None:
            self.on_frame(frame.address, len(frame.data) // 4, False)
        self._write(frame.stack, frame.address)
        self.active.append(exception)
        # a number in xPSR is handler mode, where the emulator takes the main stack
        self._write("XPSR", (frame.xpsr & ~0x1FF & ~_IT_BITS) | exception)
        self._write("CONTROL", self._read("CONTROL") & ~_FPCA)
        self._write("LR", frame.exc_return)
        self.cycles_spent += self.entry_cycles
        if not vector & 1:
            raise DeviceFault(
                "illegal instruction", pc=pc, address=self.vector_table + 4 * exception,
                detail=f"the vector of exception {exception} is 0x{vector:08x}, "
                "not a Thumb address",
            )  # fmt: skip
        return vector & ~1

    def _frame(self, pc: int) -> _Frame:
        """Return the frame that an exception now saves; nothing is changed."""
        control, sp = self._read("CONTROL"), self._read("SP")
        thread = not self.active
        process = thread and bool(control & _SPSEL)
        floats = self._has_fpu and bool(control & _FPCA)
        top = sp - _FRAME.size - (_FLOAT_FRAME.size if floats else 0)
        address = top & ~7
        xpsr = self._read("XPSR") & ~_XPSR_ALIGNED | _XPSR_THUMB
        xpsr |= _XPSR_ALIGNED if address != top else 0
        data = _FRAME.pack(*(self._read(name) for name in _SAVED), pc, xpsr & 0xFFFFFFFF)
        if floats:
            data += _FLOAT_FRAME.pack(*self._floats(), self._read("FPSCR"), 0)
        exc_return = _EXC_RETURN | 1 | (0 if floats else _NO_FLOATS)
        exc_return |= (_THREAD if thread else 0) | (_PROCESS_STACK if process else 0)
        return _Frame("PSP" if process else "MSP", address, data, xpsr, exc_return)

    def is_return(self, pc: int) -> bool:
        """Return whether a jump to ``pc`` is a return from an exception."""
        return bool(self.active) and pc >= _EXC_RETURN

    def leave(self, value: int) -> int:
        """Return from an exception by EXC_RETURN; return the pc to continue at."""
        if self.on_return is not None:
            self.on_return()
        exception = self.active.pop()
        if exception in self.levels:  # the handler left the line up: it comes again
            self.pending.add(exception)
        floats = not value & _NO_FLOATS
        stack = "PSP" if value & _PROCESS_STACK else "MSP"
        sp = self._read(stack)
        if self.on_frame is not None:
            words = (_FRAME.size + (_FLOAT_FRAME.size if floats else 0)) // 4
            self.on_frame(sp, words, True)
        *saved, pc, xpsr = _FRAME.unpack(self._bus.read(sp, _FRAME.size))
        for name, word in zip(_SAVED, saved, strict=True):
            self._write(name, word)
        sp += _FRAME.size
        if floats:
            self._restore_floats(self._bus.read(sp, _FLOAT_FRAME.size))
            sp += _FLOAT_FRAME.size
        self._write(stack, sp + (4 if xpsr & _XPSR_ALIGNED else 0))
        self._write("XPSR", xpsr & ~_XPSR_ALIGNED)
        self._write("APSR_NZCVQG", xpsr)  # Unicorn leaves GE as it is when xPSR is written
        self._return_to_mode(value, floats)
        self.cycles_spent += self.entry_cycles
        return int(pc) & ~1

    def _restore_floats(self, data: bytes) -> None:
        *registers, status, _ = _FLOAT_FRAME.unpack(data)
        for number, word in enumerate(registers):
            self._write(f"S{number}", word)
        self._write("FPSCR", status)

    def _return_to_mode(self, exc_return: int, floats: bool) -> None:
        """Set the masks and CONTROL as EXC_RETURN says."""
        control = self._read("CONTROL") & ~_FPCA | (_FPCA if floats else 0)
        if exc_return & _THREAD:
            control = control & ~_SPSEL | (_SPSEL if exc_return & _PROCESS_STACK else 0)
        self._write("CONTROL", control)
        if self._has_masks:
            self._write("FAULTMASK", 0)

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> object:
        """Return everything but the core's registers."""
        return (
            *(frozenset(self.pending), tuple(self.active), frozenset(self.enabled)),
            *(frozenset(self.levels), dict(self.priorities)),
            *(self.vector_table, self.priority_group, self.cycles_spent),
        )

    def load_state(self, state: object) -> None:
        """Go back to a saved state."""
        assert isinstance(state, tuple)
        pending, active, enabled, levels, priorities, *numbers = state
        self.pending, self.active, self.enabled = set(pending), list(active), set(enabled)
        self.levels, self.priorities = set(levels), dict(priorities)
        self.vector_table, self.priority_group, self.cycles_spent = numbers

    # -----------------------------------------------------------------------------------------

    def _first(self) -> int | None:
        """Return the most urgent pending exception that is enabled; the lowest number of equals."""
        if not self.pending:
            return None
        ready = [e for e in self.pending if e < FIRST_LINE or e in self.enabled]
        return min(ready, key=lambda e: (self.priority(e), e), default=None)

    def _group(self, exception: int) -> int:
        priority = self.priority(exception)
        return priority if priority < 0 else priority >> (self.priority_group + 1)

    def _running_priority(self, masked: bool = True) -> int:
        """Return the group priority that an exception has to be more urgent than."""
        level = min([self._group(e) for e in self.active], default=_LOWEST)
        if self._has_masks:
            base = self._read("BASEPRI") & self._mask
            if base:
                level = min(level, base >> (self.priority_group + 1))
            if masked and self._read("FAULTMASK") & 1:
                level = min(level, -1)
        if masked and self._read("PRIMASK") & 1:
            level = min(level, 0)
        return level

    def _floats(self) -> list[int]:
        return [self._read(f"S{number}") & 0xFFFFFFFF for number in range(16)]

    def _read(self, name: str) -> int:
        return int(self._engine.reg_read(register_id("arm", name)))

    def _write(self, name: str, value: int) -> None:
        self._engine.reg_write(register_id("arm", name), value & 0xFFFFFFFF)
