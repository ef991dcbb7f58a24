"""`Shadow`: what a program may do with each byte of memory, checked at its accesses; shadow.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covp.base.memory_states import Forbidden, ForbiddenAccess
from covp.device.machine.native_caches import MAX_REGIONS
from covp.device.timing.native import pointer, u32
from covp.errors import DeviceError

_TRUSTED = 8


class _State(ctypes.Structure):
    """The part of shadow.h's Shadow that both sides use."""

    _fields_ = (
        ("found", u32), ("pc", u32), ("address", u32), ("size", u32), ("is_store", u32),
        ("found_sp", u32), ("trusted_count", u32), ("trusted", u32 * 2 * _TRUSTED),
        ("stack_start", u32), ("stack_end", u32),
        ("top", u32), ("lowest", u32), ("stack_limit", u32), ("heap_start", u32), ("heap_end", u32),
        ("heap_next", u32), ("sp", u32), ("above", u32),
        ("returns_to", u32), ("result", u32 * 2), ("result_bytes", u32 * 2),
        ("decides", u32), ("loaded_at", u32),
        ("bytes", pointer * MAX_REGIONS),
    )  # fmt: skip


_UNWRITTEN, _GONE = 2, 3  # FOUND_... of shadow.h
_DECIDED = ("", "a branch", "an address", "the result", "what a peripheral gets")  # DECIDES_...


class Shadow:
    """The shadow of the memory of one core. At first nothing may be accessed.

    Args:
        library, machine: of the counter.
        stack_pointer: Unicorn's number of it.
    """

    def __init__(self, library: ctypes.CDLL, machine: int, stack_pointer: int) -> None:
        self._library, self._machine = library, machine
        address = library.machine_add_shadow(machine)
        if not address:
            raise DeviceError("not enough host memory for the check of memory")
        assert library.shadow_shared_bytes() == ctypes.sizeof(_State), "C and Python differ"
        self._state = _State.from_address(address)
        self._state.sp = stack_pointer

    def trust(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Let code in ``ranges`` of addresses, each without its end, do anything.

        Raises:
            DeviceError: there are more than 8.
        """
        if len(ranges) > _TRUSTED:
            raise DeviceError(f"{len(ranges)} ranges of trusted code; at most {_TRUSTED} can be")
        for number, (start, end) in enumerate(ranges):
            self._state.trusted[number][:] = start, end
        self._state.trusted_count = len(ranges)

    def set_return(self, address: int, result: Sequence[tuple[int, int]]) -> None:
        """Set the address calls return to, and a ``result``: registers and their bytes, as bits."""
        self._state.returns_to = address
        for position in range(2):
            register, used = result[position] if position < len(result) else (0, 0)
            self._state.result[position] = register
            self._state.result_bytes[position] = used

    def set_stack(self, start: int, end: int, limit: int, above: int) -> None:
        """Set the stack from ``start`` to before ``end``; a call may use ``limit`` bytes of it.

        ``above``: bytes of its arguments, which lie above them.
        """
        self._state.above = above
        self._state.stack_start, self._state.stack_end = start, end
        self._state.stack_limit = limit

    def set_heap(self, start: int, end: int, next_at: int) -> None:
        """Permit access from ``start`` up to the address that is stored at ``next_at``.

        None lies at or after ``end``.
        """
        self._state.heap_start, self._state.heap_end = start, end
        self._state.heap_next = next_at
        self.set(start, end - start, Forbidden.ACCESS)

    def set(self, address: int, size: int, state: Forbidden) -> None:
        """Give ``size`` bytes from ``address`` a state; nothing outside of memory."""
        if size:
            self._library.machine_set_shadow(self._machine, address, size, int(state))

    def state(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return `Forbidden` numbers of ``size`` bytes from ``address``; shape (size,)."""
        states = np.zeros(size, np.uint8)
        self._library.machine_get_shadow(
            self._machine, address, size, states.ctypes.data_as(pointer)
        )
        return states

    def undefined_bits(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return the bits without a value of ``size`` bytes from ``address``; shape (size,)."""
        bits = np.zeros(size, np.uint8)
        self._library.machine_get_undefined(
            self._machine, address, size, bits.ctypes.data_as(pointer)
        )
        return bits

    def origin(self, address: int) -> tuple[int, int]:
        """Return where the undefined bits that were stored at ``address`` come from.

        Returns:
            the address that they were loaded from, and the pc of that load; (0, 0): not known.
        """
        found = (u32 * 2)()
        self._library.machine_get_origin(self._machine, address, found)
        return found[0], found[1]

    def wrote(self, address: int, size: int) -> None:
        """Give bytes a value, as someone else has stored them."""
        self._library.machine_wrote(self._machine, address, size)

    def stack_frame(self, address: int, words: int, returns: bool) -> None:
        """Note that an exception stored its frame at ``address``, or loads it as it ``returns``."""
        self._library.machine_stack_frame(self._machine, address, words, returns)

    def begin(self) -> None:
        """Begin a run with an empty stack, and without a finding."""
        self._library.machine_begin_shadow(self._machine)

    @property
    def stack_bytes(self) -> int:
        """The largest size of the stack in bytes since `begin`, without that of trusted code."""
        return int(self._state.top - self._state.lowest)

    def finding(self) -> ForbiddenAccess | None:
        """Return the forbidden access that ended the run; None where there was none."""
        state = self._state
        if not state.found:
            return None
        return ForbiddenAccess(
            state.pc,
            state.address,
            state.size,
            bool(state.is_store),
            state.found == _UNWRITTEN,
            state.found == _GONE,
            state.found_sp,
            _DECIDED[state.decides] if state.found == _UNWRITTEN else "",
            state.loaded_at,
        )
