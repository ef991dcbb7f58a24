"""The breakpoint and watchpoint comparators of a Cortex-M: FPB or BPU, and DWT.

Registers as in Arm DDI0403E C1.11 (FPB) and C1.8 (DWT) for ARMv7-M, DDI0419E C1.9 (BPU) and C1.8
for ARMv6-M, DDI0553B D1.2 (DWT_FUNCTION) for ARMv8-M.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from covp.device.debug.cortex_m_ids import CoreIds
from covp.device.debug.target import DebugTarget, WatchedAccess
from covp.device.machine.watchpoints import WatchHit

_ENABLE, _KEY = 1, 2
_FP_COMP = 0x08
_DWT_CTRL, _DWT_COMP = 0x00, 0x20
_MATCHED = 1 << 24
_ARMV8M = 0x47701A02

Data = tuple[int, int, WatchedAccess]
"""A watchpoint: address, size in bytes, accesses."""


class Armed:
    """The breakpoints and watchpoints that comparators keep set in a target."""

    def __init__(self, target: DebugTarget) -> None:
        self._target = target
        self._code: set[int] = set()
        self._data: set[Data] = set()

    def keep(self, code: AbstractSet[int], data: AbstractSet[Data] = frozenset()) -> None:
        """Set the new ones, clear those that are no longer wanted."""
        for address in self._code - code:
            self._target.clear_breakpoint(address)
        for address in code - self._code:
            self._target.set_breakpoint(address)
        for old in self._data - data:
            self._target.clear_watchpoint(*old)
        for new in data - self._data:
            self._target.set_watchpoint(*new)
        self._code, self._data = set(code), set(data)


class BreakpointUnit:
    """FP_CTRL, FP_REMAP and FP_COMPn (BP_CTRL and BP_COMPn); flash patching is not modelled."""

    def __init__(self, target: DebugTarget, ids: CoreIds) -> None:
        self._armed = Armed(target)
        self._component = ids.fpb
        self._identity = ids.fp_ctrl
        self._code = (ids.fp_ctrl >> 8 & 0x70) | (ids.fp_ctrl >> 4 & 0xF)
        literals = ids.fp_ctrl >> 8 & 0xF
        self._second_revision = ids.fp_ctrl >> 28 == 1
        self._enabled = False
        self._comparators = [0] * (self._code + literals)

    def read(self, offset: int) -> int | None:
        """Return the register at an offset; None where there is none."""
        if offset == 0:
            return self._identity | self._enabled
        number = (offset - _FP_COMP) // 4
        if 0 <= number < len(self._comparators):
            return self._comparators[number]
        return self._component.register(offset)

    def write(self, offset: int, value: int) -> bool:
        """Write a register and return whether there is one; FP_CTRL needs its key bit."""
        number = (offset - _FP_COMP) // 4
        if offset == 0:
            if value & _KEY:
                self._enabled = bool(value & _ENABLE)
        elif 0 <= number < len(self._comparators):
            self._comparators[number] = value
        else:
            return False
        chosen = self._comparators[: self._code] if self._enabled else []
        self._armed.keep({address for value in chosen for address in self._addresses(value)})
        return True

    def _addresses(self, value: int) -> list[int]:
        if not value & _ENABLE:
            return []
        if self._second_revision:
            return [value & ~1]
        word = value & 0x1FFFFFFC
        return [word + half for bit, half in ((30, 0), (31, 2)) if value >> bit & 1]


class WatchpointUnit:
    """DWT_COMPn, DWT_MASKn and DWT_FUNCTIONn; the other registers are the device's.

    Args:
        target: where watchpoints are set.
        ids: of the core.
        device_word: reads a word at an offset of the device's own DWT.
    """

    def __init__(
        self, target: DebugTarget, ids: CoreIds, device_word: Callable[[int], int]
    ) -> None:
        self._armed = Armed(target)
        self._component = ids.dwt
        self._device_word = device_word
        self._is_v8 = ids.dwt.architecture == _ARMV8M
        self._comparators = [[0, 0, 0] for _ in range(ids.watchpoints)]
        self._matched: set[int] = set()

    def read(self, offset: int) -> int | None:
        """Return the register at an offset; None where it is not the comparators'."""
        if offset == _DWT_CTRL:
            return self._device_word(offset) & 0x0FFFFFFF | len(self._comparators) << 28
        place = self._place(offset)
        if place is None:
            return self._component.register(offset)
        number, kind = place
        value = self._comparators[number][kind]
        if kind == 2 and number in self._matched:  # a read clears it
            self._matched.discard(number)
            value |= _MATCHED
        return value

    def write(self, offset: int, value: int) -> bool:
        """Write a comparator's register and return whether it is one."""
        place = self._place(offset)
        if place is None:
            return False
        number, kind = place
        self._comparators[number][kind] = value & ~_MATCHED if kind == 2 else value
        self._armed.keep(
            {address for comparator in self._comparators for address in self._code(*comparator)},
            {data for comparator in self._comparators for data in self._data(*comparator)},
        )
        return True

    def note(self, hit: WatchHit) -> None:
        """Set MATCHED of the comparators that saw the access that stopped the core."""
        for number, comparator in enumerate(self._comparators):
            for address, size, _ in self._data(*comparator):
                if address < hit.address + hit.size and hit.address < address + size:
                    self._matched.add(number)

    def _place(self, offset: int) -> tuple[int, int] | None:
        number, within = divmod(offset - _DWT_COMP, 16)
        if 0 <= number < len(self._comparators) and within < 12:
            return number, within // 4
        return None

    def _code(self, comparator: int, mask: int, function: int) -> list[int]:
        match = 0x2 if self._is_v8 else 0x4
        is_code = function & 0xF == match and (not self._is_v8 or function >> 4 & 3 == 1)
        return [comparator & ~1] if is_code else []

    def _data(self, comparator: int, mask: int, function: int) -> list[Data]:
        if self._is_v8:
            kinds = {4: WatchedAccess.ANY, 5: WatchedAccess.WRITE, 6: WatchedAccess.READ}
            access = kinds.get(function & 0xF) if function >> 4 & 3 == 1 else None
            size = 1 << (function >> 10 & 3)
        else:
            # with DATAVMATCH or CYCMATCH it compares something else than addresses
            kinds = (
                {}
                if function & 0x180
                else {5: WatchedAccess.READ, 6: WatchedAccess.WRITE, 7: WatchedAccess.ANY}
            )
            access = kinds.get(function & 0xF)
            size = 1 << (mask & 0x1F)
        return [(comparator & -size, size, access)] if access is not None else []
