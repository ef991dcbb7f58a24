"""Reading of model files of any format: their bytes, and the name that they give a network."""

from __future__ import annotations

import re
from pathlib import Path

from covp.base.arguments import read_file
from covp.errors import ModelError


def model_bytes(path: Path, suffix: str, remedy: str) -> bytes:
    """Return the content of a model file.

    Args:
        path: of the file.
        suffix: of files of this format, for the error.
        remedy: against an empty file, for the error.

    Raises:
        ModelError: it is missing, unreadable or empty; one line.
    """
    if path.is_dir():
        raise ModelError("is a directory; name an .onnx or .tflite file in it", where=path)
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise ModelError("no such file; check the path", where=path) from None
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=path) from None
    if not data:
        raise ModelError(f"the file is empty; {remedy}", where=path)
    return data


def identifier(stem: str) -> str:
    """Return a file's name as that of a network: a C identifier in lower case."""
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower() or "model"
    return f"model_{name}" if name[0].isdigit() else name
