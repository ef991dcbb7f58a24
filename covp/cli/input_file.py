"""`read_input`: an input array from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError


def read_input(path: str | Path) -> NDArray[Any]:
    """The array in a .npy file.

    Raises:
        UsageError: the file is missing or holds no plain array.
    """
    try:
        value = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception:  # numpy's parser of the header has no errors of its own
        raise UsageError(f"{path}: holds no plain array; write it with numpy.save") from None
    if not isinstance(value, np.ndarray):
        raise UsageError(f"{path}: holds several arrays; save one with numpy.save")
    return value
