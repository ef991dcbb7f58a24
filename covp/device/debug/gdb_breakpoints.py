"""`GdbBreakpoints`: the breakpoints and watchpoints of one GDB, packets Z and z."""

from __future__ import annotations

from covp.device.debug.target import Access, DebugTarget
from covp.device.machine.watchpoints import WatchHit

_SOFTWARE, _HARDWARE, _WRITE, _READ, _ANY = range(5)
_BREAKPOINTS = {_SOFTWARE: b"swbreak", _HARDWARE: b"hwbreak"}
_WATCHPOINTS = {_WRITE: Access.WRITE, _READ: Access.READ, _ANY: Access.ANY}
_WATCH_NAMES = {_WRITE: b"watch", _READ: b"rwatch", _ANY: b"awatch"}


class GdbBreakpoints:
    """The breakpoints one GDB has set; setting twice is setting once, as the protocol requires.

    Software and hardware breakpoints are the same on the virtual device: neither changes memory
    nor is there a limit; they differ in the name of a stop.
    """

    def __init__(self, target: DebugTarget) -> None:
        self._target = target
        self._set: set[tuple[int, int, int]] = set()

    def insert(self, kind: int, address: int, size: int) -> bool:
        """Set one; return whether ``kind``, the digit after Z, is known."""
        entry = (kind, address, size)
        if kind in _BREAKPOINTS:
            if entry not in self._set:
                self._target.set_breakpoint(address)
        elif kind in _WATCHPOINTS:
            if entry not in self._set:
                self._target.set_watchpoint(address, size, _WATCHPOINTS[kind])
        else:
            return False
        self._set.add(entry)
        return True

    def remove(self, kind: int, address: int, size: int) -> bool:
        """Clear a breakpoint or watchpoint if it is set; return whether its kind is known."""
        entry = (kind, address, size)
        if entry in self._set:
            self._set.remove(entry)
            if kind in _BREAKPOINTS:
                self._target.clear_breakpoint(address)
            else:
                self._target.clear_watchpoint(address, size, _WATCHPOINTS[kind])
        return kind in _BREAKPOINTS or kind in _WATCHPOINTS

    def clear(self) -> None:
        """Remove all."""
        for entry in list(self._set):
            self.remove(*entry)

    def at(self, pc: int) -> bytes | None:
        """Return ``swbreak`` or ``hwbreak`` where a breakpoint lies at the address."""
        for kind, address, _ in self._set:
            if kind in _BREAKPOINTS and address & ~1 == pc & ~1:
                return _BREAKPOINTS[kind]
        return None

    def find_watchpoint(self, hit: WatchHit) -> tuple[bytes, int] | None:
        """Return ``watch``, ``rwatch`` or ``awatch`` and the address, if the access met one.

        The address lies inside what is watched, as GDB finds its watchpoint by it.
        """
        for kind, address, size in self._set:
            if (address, size) == (hit.watch.address, hit.watch.size) and kind in _WATCHPOINTS:
                reads, writes = kind != _WRITE, kind != _READ
                if (reads, writes) == (hit.watch.reads, hit.watch.writes):
                    return _WATCH_NAMES[kind], max(address, hit.address)
        return None
