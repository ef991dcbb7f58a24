"""`Recording`: frames of a sensor at a rate, from a file, a socket or Python."""

from __future__ import annotations

import csv
import socket
import wave
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from covp.errors import AcceleratorError

_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1
_SECONDS = 30.0  # for a socket's server to accept


class Recording:
    """A series of frames, one value of 16 bits per channel, at a rate in virtual time.

    What was taken is kept, so that a model can go back to it: copies of a model's state share the
    one recording. A generator or socket is waited for, and virtual time does not pass meanwhile:
    the run is the same however fast the frames come.

    Args:
        frames: numbers, or sequences of one number per channel.
        rate: frames in a second of virtual time, above 0.
        scale: of values, before they are rounded to integers.
        name: for errors.
    """

    def __init__(
        self, frames: Iterable[Any], rate: float, scale: float = 1.0, name: str = "recording"
    ) -> None:
        if not 0 < rate < float("inf"):
            raise AcceleratorError(f"{name}: a rate of {rate} frames a second; it must be above 0")
        self.rate, self._scale, self.name = Fraction(rate), scale, name
        self._frames: Iterator[Any] = iter(frames)
        self._taken: list[tuple[int, ...]] = []

    def __deepcopy__(self, memo: object) -> Recording:
        """Return the recording itself: the position in it belongs to the model that plays it."""
        return self

    @property
    def channels(self) -> int:
        """Number of values in a frame, taken from the first one; 0 without frames."""
        first = self.frame(0)
        return 0 if first is None else len(first)

    def frame(self, number: int) -> tuple[int, ...] | None:
        """Return frame ``number``, counted from 0, or None past the end.

        Raises:
            AcceleratorError: a value is not a number of 16 bits, or a frame has other channels.
        """
        while len(self._taken) <= number:
            frame = next(self._frames, None)
            if frame is None:
                return None
            self._taken.append(self._integers(frame))
        return self._taken[number]

    def cycle(self, number: int, begin: int, hertz: int) -> int:
        """Return the first cycle at which frame ``number`` is there; frame 0 came at ``begin``.

        ``hertz``: cycles of a second.
        """
        return begin - (-number * hertz * self.rate.denominator) // self.rate.numerator

    def _integers(self, frame: Any) -> tuple[int, ...]:
        number = len(self._taken)
        try:
            given = np.atleast_1d(np.asarray(frame, dtype=np.float64))
        except (TypeError, ValueError):
            given = np.full(1, np.nan)
        values = np.rint(given * self._scale)
        if given.ndim != 1 or not np.all((values >= _LOWEST) & (values <= _HIGHEST)):
            raise AcceleratorError(
                f"{self.name}: frame {number} is {frame!r:.60}; it must be one number of 16 bits "
                "per channel, after scaling"
            )
        if self._taken and len(values) != len(self._taken[0]):
            raise AcceleratorError(
                f"{self.name}: frame {number} has {len(values)} channels, the first one has "
                f"{len(self._taken[0])}"
            )
        return tuple(int(value) for value in values)


def open_recording(
    source: str | Path | Iterable[Any], rate: float | None = None, scale: float = 1.0
) -> Recording:
    """Return a recording of a file, a socket or Python's frames.

    Args:
        source: the path of a .wav file of 16 bits, a .npy file whose first axis is time, a .csv
            file with a line per frame and perhaps a line of names; ``tcp:HOST:PORT``, from where
            such lines come; or an iterable of frames, such as an array or a generator.
        rate: frames in a second; a .wav file has its own.
        scale: of values, before they are rounded: 16384 for g as a sensor of +-2 g gives them.

    Raises:
        AcceleratorError: it cannot be read, or has no rate.
    """
    if not isinstance(source, str | Path):
        return Recording(source, _rate(rate, "the source"), scale)
    name = str(source)
    try:
        if name.startswith("tcp:"):
            return Recording(_lines_of(name), _rate(rate, name), scale, name)
        if name.endswith(".wav"):
            frames, own = _wave(name)
            return Recording(frames, own if rate is None else rate, scale, name)
        if name.endswith(".npy"):
            array = np.load(name, allow_pickle=False)
            return Recording(np.atleast_1d(array), _rate(rate, name), scale, name)
        if name.endswith(".csv"):
            with open(name, newline="", encoding="utf-8") as file:
                rows = list(_rows(file))
            return Recording(rows, _rate(rate, name), scale, name)
    except (OSError, ValueError, EOFError, wave.Error) as error:
        raise AcceleratorError(f"{name} cannot be read: {error}") from None
    raise AcceleratorError(f"{name}: a recording is a .wav, .npy or .csv file, or tcp:HOST:PORT")


def _rate(rate: float | None, name: str) -> float:
    if rate is None:
        raise AcceleratorError(f"{name} does not say how fast it is; give the rate")
    return rate


def _wave(name: str) -> tuple[Any, int]:
    with wave.open(name, "rb") as file:
        channels, width, rate, count, *_ = file.getparams()
        data = file.readframes(count)
    if width != 2:
        raise ValueError(f"{8 * width} bits; it must have 16")
    return np.frombuffer(data, "<i2").reshape(-1, channels), rate


def _rows(lines: Iterable[str]) -> Iterator[Sequence[float]]:
    """Yield lines of numbers; a first line of names, empty lines and comments are left out."""
    is_first = True
    for row in csv.reader(line for line in lines if line.strip() and line.lstrip()[0] != "#"):
        try:
            yield [float(value) for value in row]
        except ValueError:
            if not is_first:
                raise ValueError(f"{','.join(row)!r:.60} is not a line of numbers") from None
        is_first = False


def _lines_of(address: str) -> Iterator[Sequence[float]]:
    """Yield frames from a TCP server, as they come; connect when the first one is needed."""
    try:
        host, port = address.removeprefix("tcp:").rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=_SECONDS) as client:
            client.settimeout(None)
            with client.makefile("r", encoding="utf-8") as lines:
                yield from _rows(lines)
    except (OSError, ValueError) as error:
        raise AcceleratorError(f"{address} cannot be read: {error}") from None
