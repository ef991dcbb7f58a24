"""`SensorBus`: a serial bus controller with one sensor on it; SPI and I2C say how bytes get there.

The sensor has registers of 8 bits, which a transfer of several bytes goes through by address:

| address | register | meaning |
|---|---|---|
| 0x00 | WHO_AM_I | 0xC5 |
| 0x01 | CONTROL | bit 0: measure; the FIFO is emptied when it is set |
| 0x02 | STATUS | bit 0: READY, frames wait as WATERMARK says; bit 1: OVERRUN, cleared by a read |
| 0x03 | LEVEL | frames in the FIFO |
| 0x04 | WATERMARK | frames from which on READY is up, and the pin of the interrupt; 1 after reset |
| 0x05 | CHANNELS | values of a frame |
| 0x06, 0x07 | RATE | frames a second, rounded; low byte first |
| 0x10 ... | DATA | the oldest frame, int16, low byte first |

The read of a frame's last byte takes it out, and the address goes back to 0x10, so that a long read
takes frame after frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from covp.hardware.clock import Event
from covp.hardware.peripheral import Peripheral
from covp.hardware.recording import Recording, open_recording
from covp.hardware.registers import Field, Register

WHO_AM_I = 0xC5
_CONTROL, _STATUS, _WATERMARK, _DATA = 0x01, 0x02, 0x04, 0x10
_READY, _OVERRUN = 1, 2
_MEASURE = 1
NOTHING = 0xFF
"""What a bus without a driver reads as."""


def common_registers(*status: Field) -> tuple[Register, ...]:
    """The controller's first registers, with further fields of STATUS."""
    return (
        Register(
            "CTRL",
            0x00,
            on_write="control",
            fields=[
                Field("ENABLE", 0, doc="The controller is on."),
                Field("DONE_INTERRUPT", 1, doc="Request an interrupt while STATUS.DONE is up."),
                Field("SENSOR_INTERRUPT", 2, doc="Request one while STATUS.SENSOR is up."),
            ],
            doc="What it does.",
        ),
        Register(
            "STATUS",
            0x04,
            on_write="acknowledge",
            fields=[
                Field("BUSY", 0, access="ro", doc="A byte is on its way."),
                Field("DONE", 1, access="w1c", doc="A byte is through."),
                Field("SENSOR", 2, access="ro", doc="The sensor's interrupt pin: it has data."),
                *status,
            ],
            doc="State and flags; a one that is written clears DONE.",
        ),
        Register("DIVIDER", 0x08, fields=[Field("VALUE", 0, 16)], doc="Of the bus clock."),
    )


class SensorBus(Peripheral):
    """Base of the controllers: flags, time and the sensor's registers.

    Args:
        source: what the sensor measures; see `open_recording`. None: nothing comes.
        rate: frames in a second of virtual time; a .wav file has its own.
        scale: of values, before they are rounded to 16 bits.
        depth: frames of the sensor's FIFO, 1 to 255; a frame that finds it full is lost.
    """

    size = 0x18

    def __init__(
        self,
        source: str | Path | Iterable[Any] | None = None,
        rate: float | None = None,
        scale: float = 1.0,
        depth: int = 32,
    ) -> None:
        if not 0 < depth < 256:
            raise ValueError(f"a FIFO of {depth} frames; it has 1 to 255")
        given = (() if source is None else source, 1.0 if source is None else rate)
        self._recording: Recording = open_recording(given[0], given[1], scale)
        self._depth = depth
        self._fifo: deque[tuple[int, ...]] = deque()
        self._next: Event | None = None
        self._transfer: Event | None = None
        super().__init__()

    def reset(self) -> None:
        """Controller and sensor are off; the source starts from its beginning."""
        super().reset()
        for event in (self._next, self._transfer):
            if event is not None:
                event.cancel()
        self._next = self._transfer = None
        self._fifo.clear()
        self._sensor = {_CONTROL: 0, _WATERMARK: 1}
        self._overrun = False
        self._number = 0
        self._pointer = 0
        self.interrupt.set(False)

    # -- the controller -----------------------------------------------------------------------

    def control(self, value: int) -> None:
        """CTRL was written."""
        self._request()

    def acknowledge(self, value: int) -> None:
        """STATUS was written."""
        self._request()

    def begin(self, cycles: int, finish: Callable[[], None]) -> None:
        """A byte is on its way for so many ``cycles``; then ``finish`` is called."""
        if not self.get("CTRL", "ENABLE"):
            raise self.fault("a transfer while CTRL.ENABLE is 0")
        if self.get("STATUS", "BUSY"):
            raise self.fault("a transfer while STATUS.BUSY is 1")
        self.set("STATUS", "BUSY", 1)

        def end() -> None:
            self._transfer = None
            self.set("STATUS", "BUSY", 0)
            self.set("STATUS", "DONE", 1)
            finish()
            self._request()

        self._transfer = self.clock.at(self.clock.now + cycles, end)

    def _request(self) -> None:
        self.set("STATUS", "SENSOR", int(self._ready))
        done = self.get("STATUS", "DONE") and self.get("CTRL", "DONE_INTERRUPT")
        sensor = self._ready and self.get("CTRL", "SENSOR_INTERRUPT")
        if bool(done or sensor) != self.interrupt.level:  # a line that stays up is no new request
            self.interrupt.set(bool(done or sensor))

    # -- the sensor ---------------------------------------------------------------------------

    def point_to(self, address: int) -> None:
        """The next byte is that of the sensor's register at ``address``."""
        self._pointer = address

    def read_next(self) -> int:
        """The byte of the sensor that the bus reads; the address goes on."""
        address = self._pointer
        if address >= _DATA:
            return self._read_data(address - _DATA)
        self._pointer = address + 1
        if address == _STATUS:
            status = (_READY if self._ready else 0) | (_OVERRUN if self._overrun else 0)
            self._overrun = False
            return status
        rate = min(round(self._recording.rate), 0xFFFF)
        fixed = {
            0x00: WHO_AM_I, 0x03: len(self._fifo), 0x05: self._recording.channels,
            0x06: rate & 0xFF, 0x07: rate >> 8,
        }  # fmt: skip
        return self._sensor.get(address, fixed.get(address, 0))

    def write_next(self, byte: int) -> None:
        """The bus writes a ``byte`` to the sensor; the address goes on."""
        address, self._pointer = self._pointer, self._pointer + 1
        if address == _CONTROL:
            self._switch(bool(byte & _MEASURE))
        elif address == _WATERMARK:
            self._sensor[_WATERMARK] = max(1, min(byte, self._depth))
        self._request()

    @property
    def _ready(self) -> bool:
        return len(self._fifo) >= self._sensor[_WATERMARK]

    def _switch(self, on: bool) -> None:
        if on and self._next is None:
            self._fifo.clear()
            self._begin, self._first = self.clock.now, self._number
            self._plan()
        elif not on and self._next is not None:
            self._next.cancel()
            self._next = None
        self._sensor[_CONTROL] = _MEASURE if on else 0

    def _plan(self) -> None:
        taken = self._number - self._first
        due = self._recording.cycle(taken, self._begin, self.clock.hertz)
        self._next = self.clock.at(due, self._measure)

    def _measure(self) -> None:
        self._next = None
        frame = self._recording.frame(self._number)
        if frame is None:
            return
        self._number += 1
        if len(self._fifo) < self._depth:
            self._fifo.append(frame)
        else:
            self._overrun = True
        self._plan()
        self._request()

    def _read_data(self, offset: int) -> int:
        if not self._fifo:
            return 0
        frame = self._fifo[0]
        value = frame[offset // 2] & 0xFFFF if offset < 2 * len(frame) else 0
        self._pointer += 1
        if offset + 1 >= 2 * len(frame):
            self._fifo.popleft()
            self._pointer = _DATA
            self._request()
        return value >> 8 if offset % 2 else value & 0xFF
