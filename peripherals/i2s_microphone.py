"""An I2S receiver with its DMA channel: stereo samples of a wave, in memory at their rate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import AcceleratorError
from covp.hardware.clock import Event
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.waves import read_wave

FRAME_BYTES = 4  # two int16: left, right


class I2sMicrophone(Peripheral):
    """A slave receiver of two channels of 16 bits, with two halves of a buffer in turn.

    The sender makes the bit clock: samples come while a wave is played, at its rate, and none
    before and after. A half that is full appears in memory at once, and its flag in STATUS; with
    CTRL.INTERRUPT the line is up while a flag is. Samples of a half that is not full in the end
    never appear, as with a DMA controller whose transfer does not complete.

    Args:
        wave: path of a file that is played when the receiver is enabled for the first time after
            each reset; None: what `play` is called with.
    """

    registers = RegisterMap(
        Register(
            "CTRL",
            0x00,
            on_write="control",
            fields=[
                Field("ENABLE", 0, doc="Receive; the next sample goes to the start of half 0."),
                Field("INTERRUPT", 1, doc="Request an interrupt while a flag of STATUS is up."),
            ],
            doc="What the receiver does.",
        ),
        Register(
            "STATUS",
            0x04,
            on_write="acknowledge",
            fields=[
                Field("FULL0", 0, access="w1c", doc="The first half is full."),
                Field("FULL1", 1, access="w1c", doc="The second half is full."),
                Field(
                    "OVERRUN", 2, access="w1c", doc="A half was overwritten while its flag was up."
                ),
            ],
            doc="Flags; a one that is written clears one.",
        ),
        Register("BUFFER", 0x08, doc="Address of both halves, one after the other."),
        Register("LENGTH", 0x0C, doc="Stereo samples, of 4 bytes, in a half: left, right."),
        Register(
            "RATE", 0x10, access="ro", doc="Samples a second of the latest wave; 0: none yet."
        ),
        Register("HALVES", 0x14, access="ro", doc="Halves received since ENABLE was set."),
    )

    def __init__(self, wave: str | None = None) -> None:
        self.path = wave
        self._samples: NDArray[np.int16] = np.zeros((0, 2), np.int16)
        self._begin = self._first = self._rate = 0
        self._next: Event | None = None
        self._end: Event | None = None
        super().__init__()

    def reset(self) -> None:
        """Nothing is played or received."""
        super().reset()
        for event in (self._next, self._end):
            if event is not None:
                event.cancel()
        self._next = self._end = None
        self._armed = self.path is not None
        self.interrupt.set(False)

    @property
    def is_playing(self) -> bool:
        """Whether a wave is being sent."""
        return self._end is not None

    def play(
        self,
        samples: NDArray[Any],
        rate: int,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a wave from now on.

        Args:
            samples: int16 of shape (n, 2), or (n,) for both channels alike.
            rate: samples a second.
            on_end: called when the last sample has been sent.

        Raises:
            AcceleratorError: a wave is being played, or this is none.
        """
        sent = np.asarray(samples)
        if sent.ndim == 1:
            sent = np.stack([sent, sent], 1)
        if sent.dtype != np.int16 or sent.shape[1:] != (2,) or rate <= 0:
            raise AcceleratorError(
                f"{self.name}: {sent.dtype} samples of shape {sent.shape} at {rate} Hz; they must "
                "be int16 of shape (n, 2)"
            )
        if self._end is not None:
            raise AcceleratorError(f"{self.name}: a wave is being played already")
        self._samples, self._rate, self.values["RATE"] = sent, rate, rate
        self._begin, self._first = self.clock.now, 0

        def ended() -> None:
            self._end = None
            on_end()

        self._plan()
        self._end = self.clock.at(self._cycle(len(sent)), ended)

    def control(self, value: int) -> None:
        """CTRL was written."""
        if not self.get("CTRL", "ENABLE"):
            if self._next is not None:
                self._next.cancel()
            self._next = None
        elif self._next is None:
            self.values["HALVES"] = 0
            if self._armed and self.path is not None:
                self._armed = False
                self.play(*read_wave(Path(self.path)))
            elif self._end is not None:
                passed = (self.clock.now - self._begin) * self._rate
                self._first = -(-passed // self.clock.hertz)
                self._plan()
        self._request()

    def acknowledge(self, value: int) -> None:
        """STATUS was written."""
        self._request()

    def _cycle(self, sample: int) -> int:
        """The cycle at which that many samples of the wave have been sent."""
        return self._begin + -(-sample * self.clock.hertz // self._rate)

    def _plan(self) -> None:
        """Schedule the end of the half that begins with sample `_first` of the wave."""
        length = self.values["LENGTH"]
        if not self.get("CTRL", "ENABLE"):
            return
        if length == 0:
            raise self.fault("ENABLE with LENGTH 0")
        if self._first + length <= len(self._samples):
            self._next = self.clock.at(self._cycle(self._first + length), self._full)

    def _full(self) -> None:
        length, half = self.values["LENGTH"], self.values["HALVES"] % 2
        samples = self._samples[self._first : self._first + length]
        place = self.values["BUFFER"] + half * length * FRAME_BYTES
        self.bus.write(place, samples.astype("<i2").tobytes())
        if self.get("STATUS", f"FULL{half}"):
            self.set("STATUS", "OVERRUN", 1)
        self.set("STATUS", f"FULL{half}", 1)
        self.values["HALVES"] = (self.values["HALVES"] + 1) & 0xFFFFFFFF
        self._first += length
        self._next = None
        self._plan()
        self._request()

    def _request(self) -> None:
        flags = self.values["STATUS"] != 0
        self.interrupt.set(bool(flags and self.get("CTRL", "INTERRUPT")))
