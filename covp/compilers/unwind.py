"""Call stacks: from the registers and the memory of a halted core to the functions that are active.

A function's frame is found by the debug information's frame rules (`covp.compilers.dwarf_frames`).
One that has none, written in assembly, is taken for a leaf that has not moved the stack pointer. An
address counts as a return address only where a call instruction stands before it, so that a stack
that was written over ends the walk instead of giving made-up callers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from covp.chip.isa import ARCHITECTURES
from covp.chip.isa.arm import ARM, EXCEPTION_FRAME, exception_frame_bytes
from covp.compilers.symbols import Symbols
from covp.errors import DeviceError

MAX_FRAMES = 64
_RUNNER = ("covp_call", "covp_run_tasks", "covp_enter", "covp_done", "covp_reset")
_EXCEPTION_RETURN = 0xFFFFFF00

Read = Callable[[int, int], bytes]
"""``read(address, size)``: bytes of memory; raises DeviceError outside it."""


def call_stack(
    symbols: Symbols, architecture: str, pc: int, registers: Mapping[str, int], read: Read
) -> tuple[str, ...]:
    """Return the active functions as "function (file.c:12)", innermost first.

    It ends before covp's task runner, at the first frame that cannot be unwound, or after
    `MAX_FRAMES`.

    Args:
        symbols: of the code.
        architecture: "arm", "riscv" or "x86".
        pc: of the instruction that the core is at.
        registers: by name, as many as are known.
        read: the core's memory.
    """
    walk = _Walk(symbols, architecture, registers, read)
    names: list[str] = []
    for calls in walk.frames(pc):
        if calls[-1].partition(" ")[0] in _RUNNER:
            break
        names += calls
        if len(names) >= MAX_FRAMES:
            break
    return tuple(names[:MAX_FRAMES])


class _Walk:
    def __init__(
        self, symbols: Symbols, architecture: str, registers: Mapping[str, int], read: Read
    ) -> None:
        self.symbols, self.read = symbols, read
        self.abi = ARCHITECTURES[architecture]
        self.is_arm = self.abi is ARM
        numbers = enumerate(self.abi.registers)
        self.values = {n: registers[name] for n, name in numbers if name in registers}

    def frames(self, pc: int) -> Iterator[tuple[str, ...]]:
        """Yield the functions of each frame (inlined ones first), while the next is plausible."""
        place = pc  # an instruction of the frame: behind a call it is the one before
        interrupted = True
        while True:
            calls = self.symbols.calls(place)
            if calls:
                yield calls
            elif not interrupted:
                return
            try:
                back = self._unwind(place, interrupted)
                if back is None:
                    return
                interrupted = self.is_arm and back >= _EXCEPTION_RETURN
                if interrupted:
                    place = self._leave_exception(back)
                elif self._is_return_address(back):
                    place = (back & ~1 if self.is_arm else back) - 1
                else:
                    return
            except (DeviceError, KeyError):  # outside the memory; a register that is not known
                return

    def _unwind(self, place: int, interrupted: bool) -> int | None:
        """Put `values` back to the caller's; the return address, None at the end."""
        abi, rule = self.abi, self.symbols.frame_rule(place)
        if rule is None:  # a leaf
            return self._leave_leaf() if interrupted else None
        frame, before = self.values[rule.base] + rule.offset, self.values[abi.sp]
        saved = {
            number: self._word(frame + offset)
            for number, offset in rule.saved.items()
            if offset is not None
        }
        differs = saved.get(abi.link) not in (None, self.values.get(abi.link))
        if interrupted and differs and self._has_no_frame(place):
            return self._leave_leaf()
        moved = frame > before or (interrupted and frame == before)
        if not moved or (not interrupted and abi.link not in saved):
            return None
        self.values |= saved
        for number, offset in rule.saved.items():
            if offset is None:
                self.values.pop(number, None)
        self.values[abi.sp] = frame
        return self.values[abi.link]

    def _has_no_frame(self, place: int) -> bool:
        """Return whether the link register holds a return address to another function.

        Then the function has called nothing yet: one that keeps another return address has not
        made its frame, or has left it.

        clang's rules for Arm do not say where a frame ends (they have no rows for epilogues).
        """
        link = self.values.get(self.abi.link)
        if link is None:
            return False
        return self._is_return_address(link) and self._function(link) != self._function(place)

    def _function(self, address: int) -> str | None:
        symbol = self.symbols.locate(address)[0]
        return symbol and symbol.partition("+")[0]

    def _leave_leaf(self) -> int:
        """Leave a function of which nothing is known, which has called none; return the pc."""
        if self.abi.link in self.values:
            return self.values[self.abi.link]
        self.values[self.abi.sp] += self.abi.word  # x86: the return address is on the stack
        return self._word(self.values[self.abi.sp] - self.abi.word)

    def _leave_exception(self, how: int) -> int:
        """Leave an exception handler (DDI0403E B1.5.6); return the pc that it interrupted."""
        sp = self.values[self.abi.sp]
        stacked = [self._word(sp + 4 * position) for position in range(8)]
        for name, value in zip(EXCEPTION_FRAME[:6], stacked, strict=False):
            self.values[self.abi.registers.index(name)] = value
        self.values[self.abi.sp] = sp + exception_frame_bytes(how, stacked[7])
        return stacked[6]

    def _is_return_address(self, address: int) -> bool:
        if self.is_arm:
            if not address & 1:
                return False
            address -= 1
        try:
            before = self.read(address - self.abi.longest_call, self.abi.longest_call)
        except DeviceError:  # a link register that is used for something else
            return False
        return len(before) == self.abi.longest_call and self.abi.follows_call(before)

    def _word(self, address: int) -> int:
        return int.from_bytes(self.read(address, self.abi.word), "little")
