"""`StoreLog`: the stores of an emulated core to chosen memory, one by one."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc

from covp.machine.emulated_core import EmulatedCore

_LARGEST = 8
"""Bytes of the largest store."""


class Store(NamedTuple):
    """A store of the core.

    Attributes:
        pc: of the instruction.
        address: of the first byte.
        size: in bytes.
        value: that was stored, not negative.
    """

    pc: int
    address: int
    size: int
    value: int


class StoreLog:
    """Tells of each store that touches some memory, while it is entered.

    Code is translated anew for it, and stores there take microseconds; elsewhere nothing changes.

    Args:
        core: which core's.
        first: address of the first byte.
        size: bytes.
        told: called with each store, before memory changes; the core's registers are those of the
            storing instruction.
    """

    def __init__(
        self, core: EmulatedCore, first: int, size: int, told: Callable[[Store], None]
    ) -> None:
        self._core, self._first, self._end, self._told = core, first, first + size, told
        self._hook: int | None = None

    def __enter__(self) -> StoreLog:
        engine = self._core.engine
        low = max(0, self._first - _LARGEST + 1)
        self._hook = engine.hook_add(uc.UC_HOOK_MEM_WRITE, self._on_store, None, low, self._end - 1)
        engine.ctl_flush_tb()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._hook is not None and self._core.is_open:
            self._core.engine.hook_del(self._hook)
            self._core.engine.ctl_flush_tb()
        self._hook = None

    def _on_store(
        self, engine: Uc, kind: int, address: int, size: int, value: int, user: object
    ) -> None:
        if address + size > self._first:
            pc = self._core.read_register("pc")
            self._told(Store(pc, address, size, value & ((1 << 8 * size) - 1)))
