"""Reading model files: one reader per format, found by the file's suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from covp.graph.graph import Graph


def _tflite(path: Path) -> Graph:
    from covp.frontend.tflite import load_tflite

    return load_tflite(path)


def _onnx(path: Path) -> Graph:
    from covp.frontend.onnx import load_onnx

    return load_onnx(path)


READERS: dict[str, Callable[[Path], Graph]] = {".tflite": _tflite, ".onnx": _onnx}
"""Lower-case suffix to reader."""


def read_model(path: Path) -> Graph:
    """The graph in a model file; one of an unknown suffix is read as TFLite.

    Raises:
        ModelError: the file cannot be read; one line.
    """
    return READERS.get(path.suffix.lower(), _tflite)(path)
