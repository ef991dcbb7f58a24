"""A converter that takes a row of samples at a fixed rate, recorded or from Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covp.errors import AcceleratorError
from covp.hardware.clock import Event
from covp.hardware.peripheral import LINES, Peripheral
from covp.hardware.recording import Recording, open_recording
from covp.hardware.registers import Field, Register, RegisterMap

_WORD = 4


class Sampler(Peripheral):
    """A sensor with a timer: every PERIOD cycles the next row goes into its FIFO.

    A row is one or more words: its array's bytes, padded with zeros. With each row the DMA request
    signal is pulsed. A row that does not fit the FIFO is lost and sets STATUS.OVERRUN.

    Args:
        source: the rows; see `feed`. None: nothing comes before a call of `feed`.
        rate: rows a second, which PERIOD says after a reset; a .wav file has its own.
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

    def __init__(
        self,
        source: str | Path | Iterable[ArrayLike] | None = None,
        rate: float | None = None,
        request: int = 0,
        depth: int = 64,
    ) -> None:
        if not (0 <= request < LINES and 0 < depth < 1 << 16):
            raise ValueError(f"request {request} must be below {LINES}, depth {depth} below 65536")
        self.request, self.depth = request, depth
        self._rows: Iterator[Any] = iter(())
        self._rate: float | None = None
        self._fifo: deque[int] = deque()
        self._next: Event | None = None
        super().__init__()
        self.feed(() if source is None else source, rate)

    def feed(self, source: str | Path | Iterable[ArrayLike], rate: float | None = None) -> None:
        """Set the rows to come, and their rate from the next reset on.

        Args:
            source: an array with time as its first axis, or a generator of arrays; the path of a
                .npy file with such an array, of any type; or what else `open_recording` takes: a
                .wav or .csv file or ``tcp:HOST:PORT``, whose rows are int16.
            rate: rows a second; None: that of a .wav file, else PERIOD stays as it is.

        Raises:
            AcceleratorError: it cannot be read.
        """
        self._rate = rate
        if isinstance(source, str | Path) and not str(source).endswith(".npy"):
            is_wave = str(source).endswith(".wav")
            recording = open_recording(source, rate or (None if is_wave else 1.0))
            self._rate = float(recording.rate) if is_wave else rate
            self._rows = _rows(recording)
        else:
            self._rows = iter(_loaded(source) if isinstance(source, str | Path) else source)

    def reset(self) -> None:
        """Stop; the FIFO is empty. The rows that were taken do not come again."""
        super().reset()
        if self._rate is not None:
            self.values["PERIOD"] = max(1, round(self.clock.hertz / self._rate))
        self._fifo.clear()
        self._stop()
        self._update()

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
        level = bool(self._fifo) and bool(self.get("CONTROL", "INTERRUPT"))
        if level != self.interrupt.level:  # a line that stays up is no new request
            self.interrupt.set(level)


def _loaded(path: str | Path) -> Iterable[Any]:
    try:
        rows = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise AcceleratorError(f"{path} cannot be read: {error}") from None
    if not (isinstance(rows, np.ndarray) and rows.ndim):
        raise AcceleratorError(f"{path}: rows of samples are one array, time first")
    return rows


def _rows(recording: Recording) -> Iterator[Any]:
    number = 0
    while (frame := recording.frame(number)) is not None:
        yield np.array(frame, "<i2")
        number += 1


def _words(row: ArrayLike) -> list[int]:
    data = np.asarray(row).tobytes()
    return list(map(int, np.frombuffer(data + bytes(-len(data) % _WORD), "<u4")))
