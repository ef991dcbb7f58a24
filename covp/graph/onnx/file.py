"""A .onnx file into a `ModelProto`, with its external data."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.external_data_helper

from covp.errors import ModelError
from covp.graph.model_file import model_bytes


def read_proto(path: Path) -> onnx.ModelProto:
    """Return the model in a file; its external data lies in the same folder.

    Raises:
        ModelError: the file, or one with its data, is missing or damaged; one line.
    """
    data = model_bytes(path, ".onnx", "export the model again")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf raises what it likes on damaged files
        raise ModelError(
            f"damaged or no ONNX model ({type(error).__name__}); export the model again", where=path
        ) from None
    for tensor in model.graph.initializer:
        _find_external_data(path, tensor)
    try:
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
    except Exception as error:
        text = " ".join(str(error).split())
        raise ModelError(f"its external data cannot be read: {text:.200}", where=path) from None
    return model


def _find_external_data(path: Path, tensor: onnx.TensorProto) -> None:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    place = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if not place or not (path.parent / place).is_file():
        raise ModelError(
            f"the data of {tensor.name} is in the file {place or '?'}, which is missing; "
            "put it into the same folder",
            where=path,
        )
