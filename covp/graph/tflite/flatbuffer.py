"""`TfliteFile`: the tables of a .tflite file, and its bytes outside the flatbuffer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import tflite

from covp.errors import ModelError, printable

_KIND_NAMES = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
# kinds of operators that are the same; SQUEEZE's output is its input's bytes in the file's shape
_SYNONYMS = {
    "EXPAND_DIMS": "RESHAPE",
    "SQUEEZE": "RESHAPE",
    "custom CIRCULAR_BUFFER": "CIRCULAR_BUFFER",
    "custom TFLite_Detection_PostProcess": "DETECTION_POSTPROCESS",
}
SYNONYMS = tuple(_SYNONYMS)
"""Names of operators in files that have another kind in the graph."""
DAMAGE = (
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    KeyError,
)
"""Exceptions that reading a damaged flatbuffer may raise: the accessors trust every offset."""


class TfliteFile:
    """A TFLite file; every access may raise what `DAMAGE` lists.

    Attributes:
        model: the root table.
        subgraphs: number of them; the first one is the model.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.model = tflite.Model.GetRootAsModel(data, 0)
        self.subgraphs: int = self.model.SubgraphsLength()
        if self.subgraphs < 1:
            raise ModelError("has 0 subgraphs; convert the model again")

    def subgraph(self, index: int) -> Any:
        """Return the table of a subgraph. Raises IndexError: there is none of that index."""
        if not 0 <= index < self.subgraphs:
            raise IndexError(index)
        return self.model.Subgraphs(index)

    def range(self, count: int) -> range:
        """Return the indices of a vector: a damaged length would loop for hours."""
        if not 0 <= count <= len(self._data):
            raise ValueError(f"length {count}")
        return range(count)

    def content(self, index: int) -> bytes:
        """Return the bytes of a buffer; those of large models lie after the flatbuffer."""
        buffer = self.model.Buffers(index)
        if buffer is None:
            return b""
        if buffer.Offset() > 1:
            return self._outside(buffer.Offset(), buffer.Size())
        content = buffer.DataAsNumpy()
        return b"" if isinstance(content, int) else bytes(content.tobytes())

    def _outside(self, offset: int, size: int) -> bytes:
        found = self._data[offset : offset + size]
        if len(found) != size:
            raise IndexError(offset)
        return found

    def kind(self, raw: Any) -> str:
        """Return the kind of an operator's table: a builtin name, or "custom NAME"."""
        code = self.model.OperatorCodes(raw.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = str(_KIND_NAMES.get(number, f"builtin {number}"))
        if kind == "CUSTOM":
            kind = f"custom {printable(code.CustomCode() or b'?')}"
        return _SYNONYMS.get(kind, kind)

    def options(self, raw: Any) -> Any:
        """Return the options table of an operator; of custom operators their bytes."""
        code = self.model.OperatorCodes(raw.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if number != tflite.BuiltinOperator.CUSTOM:
            return raw.BuiltinOptions()
        if raw.LargeCustomOptionsOffset() > 1:
            return self._outside(raw.LargeCustomOptionsOffset(), raw.LargeCustomOptionsSize())
        content = raw.CustomOptionsAsNumpy()
        return b"" if isinstance(content, int) else content.tobytes()


def indices(values: Any, count: int) -> Iterator[int]:
    """Return a vector of indices below ``count``."""
    if isinstance(values, int):  # flatbuffers gives 0 for a missing vector
        return iter(())
    found: list[int] = values.tolist()
    for index in found:
        if not 0 <= index < count:
            raise IndexError(index)
    return iter(found)
