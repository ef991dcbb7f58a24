"""`MarkLog`: when an emulated core entered which function and bucket; see timeline.h."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.device.machine.counter import Counter
from covp.device.machine.native_counter import counter_library
from covp.device.timing.native import u64
from covp.errors import DeviceError

MARK = np.dtype(
    [
        *(("cycle", "<u8"), ("instructions", "<u8"), ("short_cycles", "<u8")),
        *(("short_calls", "<u8"), ("kind", "<u4"), ("number", "<u4")),
        *(("address", "<u4"), ("unused", "<u4")),
    ]
)
"""A mark: the cycle from which the core is in a bucket or function; see timeline.h."""
BUCKET, CALL, RETURN = range(3)
"""The kinds of marks: another bucket; a function from its first address on; a function."""
MOST_MARKS = 1 << 17


class _Size(ctypes.Structure):
    _fields_ = (("count", u64), ("shortest", u64), ("lost", u64), ("lost_at", u64))


@dataclass(frozen=True, eq=False)
class Marks:
    """The content of a `MarkLog`.

    Attributes:
        marks: in the order of time; dtype `MARK`.
        short: of each function, by number, the cycles that it spent in calls that were left out,
            and how many those were; int64, shape (functions, 2).
        shortest: calls of fewer cycles were left out.
        lost: marks of functions for which there was no room.
        lost_at: the cycle of the first of them; functions are not known from there on.
    """

    marks: NDArray[np.void]
    short: NDArray[np.int64]
    shortest: int = 0
    lost: int = 0
    lost_at: int = 0


class MarkLog:
    """The log of a core's counter: off at first, and cheap then.

    Args:
        counter: of the core.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter, self._library = counter, counter_library()
        self._functions = 0

    def begin(self, functions: int, most: int = MOST_MARKS) -> None:
        """Log from now on; what was logged before is forgotten.

        Args:
            functions: that the counter knows, and one.
            most: marks; where there are more, the shortest calls are left out.
        """
        if not self._library.machine_log_timeline(self._counter.native, most):
            raise DeviceError("not enough host memory for the timeline")
        self._functions = functions

    def end(self) -> Marks:
        """Log no more; what was logged since `begin`."""
        size, native = _Size(), self._counter.native
        self._library.machine_timeline(native, ctypes.byref(size), None, None)
        marks = np.zeros(size.count, MARK)
        short = np.zeros((self._functions, 2), np.int64)
        self._library.machine_timeline(
            native, ctypes.byref(size), marks.ctypes.data, short.ctypes.data
        )
        self._library.machine_log_timeline(native, 0)
        return Marks(marks, short, size.shortest, size.lost, size.lost_at)
