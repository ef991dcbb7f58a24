"""A converter that takes a row of samples at a fixed rate, recorded or from Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covp.hardware.clock import Event
from covp.hardware.dma_requests import LINES
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

_WORD = 4


class Sampler(Peripheral):
    """A sensor with a timer: every PERIOD cycles the next row goes into its FIFO.

    A row is one or more words: its array's bytes, padded with zeros. With each row the DMA request
    signal is pulsed. A row that does not fit the FIFO is lost and sets STATUS.OVERRUN.

    Args:
        file: rows of a recorded signal, a .npy file whose first axis is time; else `feed` gives
            them.
        request: number of the DMA request signal.
        depth: words of the FIFO.
    """

    registers = RegisterMap(
        Register(
            "CONTROL",
            0x00,
            fields=[
                Field("ENABLE", 0, doc="Take rows; the first one after PERIOD cycles."),
                Field("INTERRUPT", 1, doc="The line is up while a word waits."),
            ],
            on_write="control",
            doc="What it does.",
        ),
        Register(
            "STATUS",
            0x04,
            fields=[
                Field("COUNT", 0, 16, access="ro", doc="Words that wait in DATA."),
                Field("OVERRUN", 16, access="w1c", doc="A row was lost."),
                Field("END", 17, access="ro", doc="There are no more rows."),
            ],
            doc="State of the FIFO.",
        ),
        Register("PERIOD", 0x08, reset=1000, doc="Cycles of the clock from row to row, above 0."),
        Register("DATA", 0x0C, access="ro", on_read="take", doc="A read takes the oldest word."),
    )
    size = 0x10

    def __init__(self, file: str | None = None, request: int = 0, depth: int = 64) -> None:
        if not (0 <= request < LINES and 0 < depth < 1 << 16):
            raise ValueError(f"request {request} must be below {LINES}, depth {depth} below 65536")
        self.request, self.depth = request, depth
        self._rows: Iterator[Any] = iter(())
        self._fifo: deque[int] = deque()
        self._next: Event | None = None
        if file is not None:
            self.feed(np.load(Path(file), allow_pickle=False))
        super().__init__()

    def feed(self, rows: Iterable[ArrayLike]) -> None:
        """Set the rows to come.

        Args:
            rows: an array with time as its first axis, or a generator of arrays.
        """
        self._rows = iter(rows)

    def reset(self) -> None:
        """Stop; the FIFO is empty. The rows that were taken do not come again."""
        super().reset()
        self._fifo.clear()
        self._stop()

    def _stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def control(self, _: int = 0) -> None:
        """CONTROL was written."""
        if not self.get("CONTROL", "ENABLE"):
            self._stop()
        elif self._next is None:
            self._plan(self.clock.now)
        self._update()

    def _plan(self, cycle: int) -> None:
        period = self.values["PERIOD"]
        if not period:
            raise self.fault("PERIOD is 0")
        self._next = self.clock.at(cycle + period, lambda: self._sample(cycle + period))

    def _sample(self, cycle: int) -> None:
        """Take the row of a cycle."""
        row = next(self._rows, None)
        if row is None:
            self._next = None
            self.set("STATUS", "END", 1)
            return
        self._plan(cycle)
        words = _words(row)
        if len(self._fifo) + len(words) > self.depth:
            self.set("STATUS", "OVERRUN", 1)
            return
        self._fifo.extend(words)
        self._update()
        self.requests.pulse(self.request)

    def take(self) -> None:
        """A core or DMA controller reads DATA."""
        if self._fifo:
            self.values["DATA"] = self._fifo.popleft()
            self._update()

    def _update(self) -> None:
        self.set("STATUS", "COUNT", len(self._fifo))
        self.interrupt.set(bool(self._fifo) and bool(self.get("CONTROL", "INTERRUPT")))


def _words(row: ArrayLike) -> list[int]:
    data = np.asarray(row).tobytes()
    return list(map(int, np.frombuffer(data + bytes(-len(data) % _WORD), "<u4")))
