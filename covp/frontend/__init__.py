"""Reading model files: one file a format."""

from __future__ import annotations

from pathlib import Path

from covp.errors import ModelError
from covp.graph.graph import Graph


def load_model(model: str | Path) -> Graph:
    """A graph from a model file or the name of a zoo model.

    Args:
        model: the path of a .tflite file, or a name of `covp.zoo.names`. A file wins when both
            exist.

    Raises:
        UsageError: neither a file nor a name of the zoo.
        ModelError: the file cannot be read; one line.
    """
    path = Path(model)
    if path.is_file() or path.suffix or len(path.parts) > 1:
        return _load_file(path)
    from covp import zoo
    from covp.zoo.catalog import CATALOG

    if path.is_dir() and str(model) not in CATALOG:
        return _load_file(path)
    found = zoo.find(str(model))
    graph = _load_file(found.path)
    graph.name = str(model)
    return graph


def _load_file(path: Path) -> Graph:
    if path.suffix.lower() == ".onnx":
        raise ModelError(f"{path}: ONNX is not supported yet; convert the model to .tflite")
    from covp.frontend.tflite import load_tflite

    return load_tflite(path)
