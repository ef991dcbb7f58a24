"""Small datasets in the layout of MLPerf Tiny's runner, and what a model says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LABELS = "y_labels.csv"
Litert = Callable[[bytes, Sequence[NDArray[np.int8]]], list[NDArray[np.int8]]]

SIZES = {"ic01": 3072, "kws01": 490, "vww01": 27648}
CLASSES = {"ic01": 10, "kws01": 12, "vww01": 2}
SHAPES = {"ic01": (1, 32, 32, 3), "kws01": (1, 49, 10, 1), "vww01": (1, 96, 96, 3)}
WINDOW, STRIDE = 2560, 512


def write_classes(folder: Path, name: str, labels: Sequence[int], seed: int = 0) -> list[bytes]:
    """A folder with a file of random bytes per label; returns their contents."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    contents = [rng.bytes(SIZES[name]) for _ in labels]
    for index, content in enumerate(contents):
        (folder / f"{index:03}.bin").write_bytes(content)
    lines = [f"{i:03}.bin,{CLASSES[name]},{label}\n" for i, label in enumerate(labels)]
    (folder / LABELS).write_text("".join(lines))
    return contents


def write_spectra(
    folder: Path, labels: Sequence[int], windows: int = 3, seed: int = 0
) -> list[NDArray[np.float32]]:
    """The same of ad01: files with so many windows and 100 bytes more; returns their values."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    count = (WINDOW + (windows - 1) * STRIDE + 100) // 4
    files = [
        rng.normal(-10 - label, rng.uniform(6, 9) + label, count).astype("<f4") for label in labels
    ]
    for index, values in enumerate(files):
        (folder / f"{index:03}.bin").write_bytes(values.tobytes())
    lines = [f"{i:03}.bin,2,{label},{WINDOW},{STRIDE}\n" for i, label in enumerate(labels)]
    (folder / LABELS).write_text("".join(lines))
    return files


def as_input(name: str, content: bytes) -> NDArray[np.int8]:
    """The input of a sample, by the definition of the benchmark in plain integers."""
    shift = 0 if name == "kws01" else 128
    values = [byte - shift if shift or byte < 128 else byte - 256 for byte in content]
    return np.array(values, np.int8).reshape(SHAPES[name])


def as_spectrum(values: NDArray[np.float32], scale: float, zero_point: int) -> NDArray[np.int8]:
    """The input of a window, value by value."""
    steps = [float(np.float32(value) / np.float32(scale)) for value in values]
    whole = [int(abs(step) + 0.5) * (1 if step > 0 else -1) + zero_point for step in steps]
    return np.array([min(max(value, -128), 127) for value in whole], np.int8)[None]


def pairs_won(scores: Sequence[float], labels: Sequence[int]) -> float:
    """The area under the curve by its definition: all pairs of an anomaly and a normal one."""
    ones = [score for score, label in zip(scores, labels, strict=True) if label]
    zeros = [score for score, label in zip(scores, labels, strict=True) if not label]
    won = sum((one > zero) + (one == zero) / 2 for one in ones for zero in zeros)
    return won / (len(ones) * len(zeros))
