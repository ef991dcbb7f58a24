"""Reading model files: one reader per format, found by the file's suffix."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path

from covp.base.request import Shapes
from covp.errors import ModelError, UsageError
from covp.graph.graph import Graph


def _tflite(path: Path, shapes: Shapes | None) -> Graph:
    from covp.graph.tflite import load_tflite

    if shapes:
        raise UsageError(
            "the file states the shapes of its inputs; --shape is for ONNX", where=path
        )
    return load_tflite(path)


def _onnx(path: Path, shapes: Shapes | None) -> Graph:
    from covp.graph.onnx import load_onnx

    return load_onnx(path, shapes)


READERS: dict[str, Callable[[Path, Shapes | None], Graph]] = {".tflite": _tflite, ".onnx": _onnx}
"""Lower-case suffix to reader."""


_KERAS = "python -m tf2onnx.convert --keras {path} --output model.onnx"
_SAVED = "python -m tf2onnx.convert --saved-model {path} --output model.onnx"
_FROZEN = "python -m tf2onnx.convert --graphdef {path} --output model.onnx"
_TORCH = "torch.onnx.export(model, inputs, 'model.onnx')"
_SKLEARN = "onnx.save(skl2onnx.to_onnx(model, samples[:1]), 'model.onnx')"
_KERAS_FILE = ("a Keras model", f"export it: {_KERAS}")
_FOLDER = ("a SavedModel", f"export it: {_SAVED}")
_PICKLE = ("a pickle, which covp never loads", f"export it where the model is: {_SKLEARN}")
_TORCH_FILE = ("a PyTorch file", f"export it in the program that has the model: {_TORCH}")
_WEIGHTS = ("weights alone, no network", "save a model in the program that has it")
_KNOWN = {
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _KERAS_FILE),
    ".savedmodel": _FOLDER,
    ".pb": ("a frozen TensorFlow graph", f"export it: {_FROZEN} --inputs x:0 --outputs y:0"),
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ptl", ".pte", ".jit"), _TORCH_FILE),
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".sav"), _PICKLE),
    **dict.fromkeys((".safetensors", ".ckpt", ".npz"), _WEIGHTS),
}
"""Lower-case suffix of what other programs save: what it is, and what makes a model file of it."""
_CONTENT = {
    b"\x89HDF": _KERAS_FILE,
    b"PK\x03\x04": ("an archive, as of PyTorch or Keras", f"export it: {_TORCH}, or {_KERAS}"),
    b"version https://git-lfs": ("a pointer of Git LFS, not the file", "fetch it: git lfs pull"),
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"), _PICKLE),
}
"""First bytes of files that are none of the above by their suffix."""


def _foreign(path: Path) -> tuple[str, str] | None:
    """Return what another program's file is, and how it becomes a model file; or None."""
    if path.is_dir():
        return _FOLDER if (path / "saved_model.pb").exists() else None
    if path.suffix.lower() in _KNOWN and path.exists():
        return _KNOWN[path.suffix.lower()]
    start = b""
    if not path.is_file():  # a pipe would wait for its writer
        return None
    with contextlib.suppress(OSError), path.open("rb") as stream:  # the reader says why
        start = stream.read(32)
    return next((known for magic, known in _CONTENT.items() if start.startswith(magic)), None)


def read_model(path: Path, shapes: Shapes | None = None) -> Graph:
    """Return the graph in a model file; one of an unknown suffix is read as TFLite.

    Args:
        path: of the file.
        shapes: of inputs by name, for those that the file leaves open.

    Raises:
        UsageError: shapes are given and the file states its own.
        ModelError: the file cannot be read; one line.
    """
    if (foreign := _foreign(path)) is not None:
        what, how = foreign
        how = how.format(path=shlex.quote(str(path)))
        raise ModelError(f"{what}; covp reads .onnx and .tflite; {how}", where=path)
    return READERS.get(path.suffix.lower(), _tflite)(path, shapes)
