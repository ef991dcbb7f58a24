"""Call stacks: from the registers and the memory of a halted core to the functions that are active.

A function's frame is found by the debug information's frame rules (`covp.compilers.dwarf_frames`).
One that has none, written in assembly, is taken for a leaf that has not moved the stack pointer. An
address counts as a return address only where a call instruction stands before it, so that a stack
that was written over ends the walk instead of giving made-up callers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from covp.compilers.symbols import Symbols
from covp.errors import DeviceError

MAX_FRAMES = 64
_RUNNER = ("covp_call", "covp_run_tasks", "covp_enter", "covp_done", "covp_reset")
_EXCEPTION_RETURN = 0xFFFFFF00
_NO_FPU_FRAME, _PADDED = 1 << 4, 1 << 9

Read = Callable[[int, int], bytes]
"""``read(address, size)``: bytes of memory; raises DeviceError outside it."""


@dataclass(frozen=True)
class _Abi:
    """An architecture's registers by DWARF number.

    Sources: DWARF for the Arm Architecture (IHI 0040), RISC-V ELF psABI, System V ABI x86-64.

    Attributes:
        registers: their names in a fault's ``registers``.
        sp, link: numbers of the stack pointer and of the return address.
        word: bytes of a saved register.
        follows_call: whether the bytes before an address are a call instruction.
    """

    registers: tuple[str, ...]
    sp: int
    link: int
    word: int
    follows_call: Callable[[bytes], bool]


def _after_arm_call(before: bytes) -> bool:
    """BL and BLX of ARMv6-M and ARMv7-M (DDI0403E A7.7.18, A7.7.19)."""
    first, second = (int.from_bytes(before[at : at + 2], "little") for at in (0, 2))
    is_bl = first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000
    return is_bl or second & 0xFF87 == 0x4780


def _after_riscv_call(before: bytes) -> bool:
    """JAL and JALR that write ra or t0, C.JAL and C.JALR (RISC-V unprivileged ISA 20191213)."""
    word, half = (int.from_bytes(before[-size:], "little") for size in (4, 2))
    is_jump = word & 0x7F in (0x6F, 0x67) and word >> 7 & 31 in (1, 5)
    return is_jump or half & 0xE003 == 0x2001 or (half & 0xF07F == 0x9002 and half & 0xF80 != 0)


def _after_x86_call(before: bytes) -> bool:
    """CALL rel32 (E8), or FF /2 of 2 to 7 bytes (Intel SDM volume 2A)."""
    indirect = (before[-n] == 0xFF and before[1 - n] >> 3 & 7 == 2 for n in range(2, 8))
    return before[-5] == 0xE8 or any(indirect)


_ABIS = {
    "arm": _Abi((*(f"r{number}" for number in range(13)), "sp", "lr"), 13, 14, 4, _after_arm_call),
    "riscv": _Abi(
        (
            *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
            *(f"a{number}" for number in range(8)),
            *(f"s{number}" for number in range(2, 12)),
            *("t3", "t4", "t5", "t6"),
        ),
        sp=2,
        link=1,
        word=4,
        follows_call=_after_riscv_call,
    ),
    "x86": _Abi(
        (
            *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
            *(f"r{number}" for number in range(8, 16)),
        ),
        sp=7,
        link=16,
        word=8,
        follows_call=_after_x86_call,
    ),
}
_LONGEST_CALL = {"arm": 4, "riscv": 4, "x86": 7}


def call_stack(
    symbols: Symbols, architecture: str, pc: int, registers: Mapping[str, int], read: Read
) -> tuple[str, ...]:
    """The active functions as "function (file.c:12)", innermost first.

    It ends before covp's task runner, at the first frame that cannot be told, or after
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
        self.abi = _ABIS[architecture]
        self.longest_call = _LONGEST_CALL[architecture]
        self.is_arm = architecture == "arm"
        numbers = enumerate(self.abi.registers)
        self.values = {n: registers[name] for n, name in numbers if name in registers}

    def frames(self, pc: int) -> Iterator[tuple[str, ...]]:
        """The functions of each frame (inlined ones first), until there is no plausible next."""
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
        """Whether the link register holds a return address to elsewhere, so that the function has
        called nothing yet: one that keeps another has not made its frame, or has left it.

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
        """From a function of which nothing is known, which has called none."""
        if self.abi.link in self.values:
            return self.values[self.abi.link]
        self.values[self.abi.sp] += self.abi.word  # x86: the return address is on the stack
        return self._word(self.values[self.abi.sp] - self.abi.word)

    def _leave_exception(self, how: int) -> int:
        """From an exception handler to the code it interrupted (DDI0403E B1.5.6): its pc."""
        sp = self.values[self.abi.sp]
        stacked = [self._word(sp + 4 * position) for position in range(8)]
        for number, value in zip((0, 1, 2, 3, 12, 14), stacked, strict=False):
            self.values[number] = value
        size = 0x20 if how & _NO_FPU_FRAME else 0x68
        self.values[self.abi.sp] = sp + size + (4 if stacked[7] & _PADDED else 0)
        return stacked[6]

    def _is_return_address(self, address: int) -> bool:
        if self.is_arm:
            if not address & 1:
                return False
            address -= 1
        try:
            before = self.read(address - self.longest_call, self.longest_call)
        except DeviceError:  # a link register that is used for something else
            return False
        return len(before) == self.longest_call and self.abi.follows_call(before)

    def _word(self, address: int) -> int:
        return int.from_bytes(self.read(address, self.abi.word), "little")
