"""Reading model files: one reader per format, found by the file's suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from covp.base.request import Shapes
from covp.errors import ModelError, UsageError
from covp.graph.graph import Graph


def _tflite(path: Path, shapes: Shapes | None) -> Graph:
    from covp.graph.tflite import load_tflite

    if shapes:
        raise UsageError(f"{path}: the file states the shapes of its inputs; --shape is for ONNX")
    return load_tflite(path)


def _onnx(path: Path, shapes: Shapes | None) -> Graph:
    from covp.graph.onnx import load_onnx

    return load_onnx(path, shapes)


READERS: dict[str, Callable[[Path, Shapes | None], Graph]] = {".tflite": _tflite, ".onnx": _onnx}
"""Lower-case suffix to reader."""


_KERAS = "save it as .tflite with tf.lite.TFLiteConverter, or as .onnx with tf2onnx"
_TORCH = "save it as .onnx with torch.onnx.export(model, inputs, 'model.onnx')"
FOREIGN = {
    **dict.fromkeys((".h5", ".hdf5", ".keras", ".pb", ".savedmodel"), _KERAS),
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ptl", ".pte", ".jit"), _TORCH),
    **dict.fromkeys((".safetensors", ".ckpt", ".npz"), "weights alone are no network: save it as "
                    ".onnx or .tflite from the program that has it"),
}  # fmt: skip
"""Lower-case suffix of what other programs save to what makes a model file of it."""


def read_model(path: Path, shapes: Shapes | None = None) -> Graph:
    """The graph in a model file; one of an unknown suffix is read as TFLite.

    Args:
        path: of the file.
        shapes: of inputs by name, for those that the file leaves open.

    Raises:
        UsageError: shapes are given and the file states its own.
        ModelError: the file cannot be read; one line.
    """
    suffix = path.suffix.lower()
    if suffix in FOREIGN and path.exists():
        raise ModelError(f"{path}: covp reads .tflite and .onnx; {FOREIGN[suffix]}")
    return READERS.get(suffix, _tflite)(path, shapes)
