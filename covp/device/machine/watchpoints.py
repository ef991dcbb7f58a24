"""`Watchpoints`: stop the emulated core before accesses to chosen memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc

from covp.device.machine.counter import Counter
from covp.hardware.bus import Memory

_FIRST, _LAST = 1, 0  # begin > end: the hook is called for all addresses


@dataclass(frozen=True)
class Watch:
    """Memory from ``address``, ``size`` bytes; which accesses to it count."""

    address: int
    size: int
    reads: bool
    writes: bool

    def meets(self, address: int, size: int, is_write: bool) -> bool:
        """Return whether an access touches the watched bytes."""
        wanted = self.writes if is_write else self.reads
        return wanted and address < self.address + self.size and self.address < address + size


@dataclass(frozen=True)
class WatchHit:
    """The access that was stopped: first byte, size, direction, and the watch that it met."""

    address: int
    size: int
    is_write: bool
    watch: Watch


class Watchpoints:
    """The watched memory of one emulator; without any there is no cost.

    The emulator stops an access only when it is done, with the pc still at the instruction. A
    store is undone here, so that the core is halted before it.

    Attributes:
        hit: the access that ended the latest run, or None.
        suspended: accesses pass, for stepping over one.
    """

    def __init__(self, engine: Uc, counter: Counter, memories: Sequence[Memory]) -> None:
        self.hit: WatchHit | None = None
        self.suspended = False
        self._engine, self._counter, self._memories = engine, counter, memories
        self._watches: tuple[Watch, ...] = ()
        self._hook: int | None = None
        self._before = b""

    def set(self, watches: Iterable[Watch]) -> None:
        """Replace all of them."""
        self._watches = tuple(watches)
        if self._watches and self._hook is None:
            kinds = uc.UC_HOOK_MEM_READ | uc.UC_HOOK_MEM_WRITE
            self._hook = self._engine.hook_add(kinds, self._on_access, None, _FIRST, _LAST)
            self._engine.ctl_flush_tb()  # code translated without the hook does not call it
        elif not self._watches and self._hook is not None:
            self._engine.hook_del(self._hook)
            self._hook = None
            self._engine.ctl_flush_tb()

    def stopped_at(self, pc: int) -> bool:
        """Return whether an access ended the run that is just over; a store is undone."""
        if self.hit is None or self.suspended:
            return False
        if self.hit.is_write:
            self._bytes(self.hit.address, self.hit.size, self._before)
        return True

    def forget_hit(self) -> None:
        """Forget the hit, as another run begins."""
        self.hit = None

    def _on_access(
        self, engine: Uc, kind: int, address: int, size: int, value: int, user: object
    ) -> None:
        if self.hit is not None or self.suspended:
            return
        is_write = kind == uc.UC_MEM_WRITE
        for watch in self._watches:
            if watch.meets(address, size, is_write):
                self._before = self._bytes(address, size)
                self.hit = WatchHit(address, size, is_write, watch)
                self._counter.give_up_access()
                engine.emu_stop()
                return

    def _bytes(self, address: int, size: int, new: bytes | None = None) -> bytes:
        for memory in self._memories:
            if memory.region.holds(address, size):
                old = memory.read(address, size)
                if new:
                    memory.write(address, new)
                return old
        return b""
