"""Wave files, for models of audio hardware."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from covp.errors import AcceleratorError


def read_wave(path: Path) -> tuple[NDArray[np.int16], int]:
    """Return the samples, of shape (n,) or (n, 2), and the rate of a 16-bit wave file.

    Raises:
        AcceleratorError: it cannot be read, or is of another kind.
    """
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate, count, *_ = file.getparams()
            data = file.readframes(count)
    except (OSError, EOFError, wave.Error) as error:
        raise AcceleratorError(f"{path} cannot be played: {error}") from None
    if width != 2 or channels not in (1, 2):
        raise AcceleratorError(
            f"{path} cannot be played: {channels} channels of {8 * width} bits; it must have one "
            "or two of 16"
        )
    samples = np.frombuffer(data, "<i2").astype(np.int16).reshape(-1, channels)
    return (samples[:, 0] if channels == 1 else samples), rate
