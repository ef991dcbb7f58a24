"""`StoreLog`: the stores of an emulated core to chosen memory, one by one."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import uclib

from covp.compilers.host_compiler import PLAIN_LIBRARY, compile_for_host
from covp.device.machine.emulated_core import EmulatedCore
from covp.device.machine.engine import register_ids
from covp.errors import DeviceError

STORE = np.dtype(
    [("pc", "<u4"), ("address", "<u4"), ("value", "<u8"), ("size", "<u4"), ("reserved", "<u4")]
)
"""A store: the instruction, the first byte, what was stored (not negative), how many bytes."""
MOST = 4_000_000
"""Stores that are kept, the first ones."""
_NEVER = (1 << 64) - 1
_LARGEST = 8
_TOLD = ctypes.CFUNCTYPE(None)
_SOURCE = Path(__file__).parent / "store_log.c"


class _Log(ctypes.Structure):
    """``Log`` of store_log.c."""

    _fields_ = (
        ("count", ctypes.c_uint64), ("limit", ctypes.c_uint64), ("notice", ctypes.c_uint64),
        ("first", ctypes.c_uint32), ("end", ctypes.c_uint32),
        ("pc", ctypes.c_int32), ("xpsr", ctypes.c_int32),
        ("reg_read", ctypes.c_void_p), ("reg_write", ctypes.c_void_p), ("told", _TOLD),
        ("records", ctypes.c_void_p),
    )  # fmt: skip


class StoreLog:
    """A context in which each store that touches some memory is recorded.

    Code is translated anew for it; without it there is no cost.

    Args:
        core: which core's.
        first: address of the first byte.
        size: bytes.
        most: stores that are kept, the first ones.
        number: ``on_store`` is called before the store of that number, from 0; the core's
            registers are then those of the storing instruction. None: never.
        on_store: see ``number``.
    """

    def __init__(
        self,
        core: EmulatedCore,
        first: int,
        size: int,
        most: int = MOST,
        number: int | None = None,
        on_store: Callable[[], None] = lambda: None,
    ) -> None:
        self._core = core
        self._records = np.empty(most, STORE)  # pages that are never touched take no memory
        self._error: BaseException | None = None
        self._callback = _TOLD(functools.partial(self._call, on_store))
        ids = register_ids(core.core.architecture)
        self._log = _Log(
            limit=most,
            notice=_NEVER if number is None else number,
            first=first,
            end=first + size,
            pc=ids["pc"],
            xpsr=ids.get("xpsr", 0),
            reg_read=ctypes.cast(uclib.uc_reg_read, ctypes.c_void_p).value,
            reg_write=ctypes.cast(uclib.uc_reg_write, ctypes.c_void_p).value,
            told=self._callback,
            records=self._records.ctypes.data,
        )
        self._handle = ctypes.c_size_t()

    def _call(self, on_store: Callable[[], None]) -> None:
        try:
            on_store()
        except BaseException as error:  # ctypes would print it and go on
            self._error = error

    @property
    def count(self) -> int:
        """The number of stores so far, whether kept or not."""
        return int(self._log.count)

    @property
    def stores(self) -> NDArray[Any]:
        """The stores that are kept, of dtype `STORE`, in the order of time."""
        return self._records[: min(self.count, self._records.size)]

    def __enter__(self) -> StoreLog:
        engine, log = self._core.engine, self._log
        status = uclib.uc_hook_add(
            engine._uch,
            ctypes.byref(self._handle),
            uc.UC_HOOK_MEM_WRITE,
            ctypes.cast(_library().on_store, ctypes.c_void_p),
            ctypes.byref(log),
            ctypes.c_uint64(max(0, log.first - _LARGEST + 1)),
            ctypes.c_uint64(log.end - 1),
        )
        if status != uc.UC_ERR_OK:
            raise DeviceError(f"the emulator cannot show stores (status {status})")
        engine.ctl_flush_tb()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._core.is_open:
            uclib.uc_hook_del(self._core.engine._uch, self._handle)
            self._core.engine.ctl_flush_tb()
        if self._error is not None and error is None:
            raise self._error


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """Return the native side, compiled on first use."""
    path = compile_for_host("store_log", "the log of stores", [_SOURCE], PLAIN_LIBRARY)
    library = ctypes.CDLL(str(path))
    library.store_log_bytes.restype = ctypes.c_uint64
    assert library.store_log_bytes() == ctypes.sizeof(_Log), "C and Python differ"
    return library
