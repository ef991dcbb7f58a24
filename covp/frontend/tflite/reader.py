"""The TFLite reader: a flatbuffer into a `Graph`."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from covp.arguments import read_file
from covp.errors import ModelError
from covp.frontend.tflite.checks import check_op, check_order
from covp.frontend.tflite.converters import CONVERTERS, Converter
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.user_operators import find_user_operator

_IDENTIFIER = b"TFL3"
_LONGEST = 500  # characters of an error
_MOST_AXES = 8  # of LiteRT's kernels
_DTYPES = {
    tflite.TensorType.FLOAT32: np.float32,
    tflite.TensorType.INT8: np.int8,
    tflite.TensorType.UINT8: np.uint8,
    tflite.TensorType.INT16: np.int16,
    tflite.TensorType.INT32: np.int32,
    tflite.TensorType.INT64: np.int64,
    tflite.TensorType.BOOL: np.bool_,
}
_KIND_NAMES = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
_TYPE_NAMES = {v: k for k, v in vars(tflite.TensorType).items() if isinstance(v, int)}
# their output is their input's bytes in the shape that the file states
_SYNONYMS = {"EXPAND_DIMS": "RESHAPE", "SQUEEZE": "RESHAPE"}
# what reading a damaged flatbuffer may raise: the accessors trust every offset
_DAMAGE = (
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    KeyError,
)


def load_tflite(path: str | Path) -> Graph:
    """Read a .tflite file.

    Raises:
        ModelError: the file is missing, damaged, or uses what is not supported. The text names
            the file, the operator with its index or the tensor, and what would fix it.
    """
    path = Path(path)
    return read_tflite(_read(path), _identifier(path.stem), str(path))


def read_tflite(data: bytes, name: str = "model", where: str = "model") -> Graph:
    """As `load_tflite` for a file's content; errors begin with ``where``."""
    try:
        if data[4:8] != _IDENTIFIER:
            raise ModelError("not a TFLite model (no 'TFL3' at byte 4); expected .tflite")
        return _Reader(data, name).graph()
    except ModelError as error:
        text = str(error)  # with names and numbers of any length in a damaged file
        raise ModelError(f"{where}: {text[:_LONGEST]}{'...' * (len(text) > _LONGEST)}") from None
    except _DAMAGE as error:
        raise ModelError(
            f"{where}: damaged or truncated ({type(error).__name__} while reading); "
            "copy or convert the model again"
        ) from error


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise ModelError(f"{path}: is a directory; name a .tflite file in it")
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if not data:
        raise ModelError(f"{path}: the file is empty; copy or convert the model again")
    return data


def _identifier(stem: str) -> str:
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower() or "model"
    return f"model_{name}" if name[0].isdigit() else name


def _printable(name: bytes) -> str:
    """A name that stays on one line, in messages and in tables."""
    text = name.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


class _Reader:
    """One model; every access may raise what `_DAMAGE` lists."""

    def __init__(self, data: bytes, name: str) -> None:
        self.size = len(data)
        self.name = name
        self.expanded_bytes = 0
        self.model = tflite.Model.GetRootAsModel(data, 0)
        count = self.model.SubgraphsLength()
        if count != 1:
            raise ModelError(
                f"has {count} subgraphs, one is supported; convert the model without control flow "
                "and with one signature"
            )
        self.subgraph = self.model.Subgraphs(0)

    def graph(self) -> Graph:
        self.tensors = [self._tensor(i) for i in self._range(self.subgraph.TensorsLength())]
        _make_unique(self.tensors)
        ops = [self._op(i) for i in self._range(self.subgraph.OperatorsLength())]
        if not ops:
            raise ModelError("has no operator; nothing is left to run")
        inputs = [self.tensors[i] for i in self._indices(self.subgraph.InputsAsNumpy())]
        outputs = [self.tensors[i] for i in self._indices(self.subgraph.OutputsAsNumpy())]
        if not inputs or not outputs:
            raise ModelError("has no input or no output")
        graph = Graph(self.name, inputs, outputs, ops, expanded_bytes=self.expanded_bytes)
        check_order(graph)
        return graph

    def _range(self, count: int) -> range:
        # a damaged length would loop for hours
        if not 0 <= count <= self.size:
            raise ValueError(f"length {count}")
        return range(count)

    def _indices(self, values: Any) -> Iterator[int]:
        if isinstance(values, int):  # flatbuffers gives 0 for a missing vector
            return iter(())
        indices: list[int] = values.tolist()
        for index in indices:
            if not 0 <= index < len(self.tensors):
                raise IndexError(index)
        return iter(indices)

    def _tensor(self, index: int) -> Tensor:
        raw = self.subgraph.Tensors(index)
        name = _printable(raw.Name() or b"") or f"tensor_{index}"
        shape = tuple(int(raw.Shape(i)) for i in self._range(raw.ShapeLength()))
        if raw.Type() not in _DTYPES:
            kind = _TYPE_NAMES.get(raw.Type(), f"type {raw.Type()}")
            raise ModelError(
                f"tensor {name} is {kind.lower()}, which is not supported; convert the model to "
                "int8 (full integer quantization) or float32"
            )
        if len(shape) > _MOST_AXES:
            raise ModelError(f"tensor {name} has {len(shape)} axes; {_MOST_AXES} are the most")
        if any(extent < 0 for extent in shape):
            raise ModelError(f"tensor {name} has a dynamic shape {shape}; fix it when converting")
        dtype: np.dtype[Any] = np.dtype(_DTYPES[raw.Type()])
        if math.prod(shape) * dtype.itemsize >= 2**31:
            raise ModelError(f"tensor {name} of shape {shape} is larger than a core's memory")
        scaled = self._quantization(raw, name, shape)
        if scaled is not None and dtype.kind in "iu":
            info, points = np.iinfo(dtype), scaled.zero_point
            if points.min() < info.min or points.max() > info.max:
                raise ModelError(f"tensor {name} has a zero point outside {dtype}")
        return Tensor(name, shape, dtype, scaled, self._data(raw, shape, dtype))

    def _data(self, raw: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
        buffer = self.model.Buffers(raw.Buffer())
        content = buffer.DataAsNumpy() if buffer is not None else 0
        if isinstance(content, int) or content.size == 0:
            return None
        return np.frombuffer(content.tobytes(), dtype).reshape(shape)

    def _quantization(self, raw: Any, name: str, shape: tuple[int, ...]) -> Quantization | None:
        parameters = raw.Quantization()
        if parameters is None or parameters.ScaleLength() == 0:
            return None
        scale = np.array(parameters.ScaleAsNumpy(), np.float32)
        zero = parameters.ZeroPointAsNumpy()
        zero_point = np.zeros_like(scale, np.int64) if isinstance(zero, int) else np.array(zero)
        zero_points = np.broadcast_to(zero_point, scale.shape).astype(np.int32)
        # biases of old converters state the axis of their weights
        axis = int(parameters.QuantizedDimension()) if scale.size > 1 and len(shape) > 1 else 0
        if not np.isfinite(scale).all() or (scale <= 0).any():
            raise ModelError(f"tensor {name} has a scale that is not a positive number")
        if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
            raise ModelError(f"tensor {name}: {scale.size} scales do not fit its shape {shape}")
        return Quantization(scale, zero_points, axis)

    def _op(self, index: int) -> Op:
        raw = self.subgraph.Operators(index)
        kind, convert = self._converter(raw, index)
        inputs: list[Tensor | None] = []
        for i in self._range(raw.InputsLength()):
            at = int(raw.Inputs(i))
            inputs.append(None if at == -1 else self.tensors[next(self._indices(np.array([at])))])
        outputs = [self.tensors[i] for i in self._indices(raw.OutputsAsNumpy())]
        op = Op(kind, f"{kind.lower()}_{index}", inputs, outputs, None, index)
        self.expanded_bytes += _widen_weights(op)
        try:
            options = self._options(raw)
            op.attributes = convert(op, options)
            check_op(op)
        except ModelError as error:
            raise ModelError(f"operator {index} ({kind}): {error}") from None
        return op

    def _converter(self, raw: Any, index: int) -> tuple[str, Converter]:
        """Kind and converter: covp's own, or a user's."""
        kind = self._kind(raw)
        kind = _SYNONYMS.get(kind, kind)
        if kind in CONVERTERS:
            return kind, CONVERTERS[kind]
        operator = find_user_operator(kind.removeprefix("custom "))
        if operator is None:
            known = ", ".join(sorted({*CONVERTERS, *_SYNONYMS}))
            raise ModelError(
                f"operator {index} is {kind}, which is not supported; a file or package can add "
                f"it, see covp.graph.user_operators; known: {known}"
            )
        return operator.kind, operator.convert or (lambda op, options: None)

    def _options(self, raw: Any) -> Any:
        """The options table; of custom operators their bytes."""
        if not self._kind(raw).startswith("custom "):
            return raw.BuiltinOptions()
        content = raw.CustomOptionsAsNumpy()
        return b"" if isinstance(content, int) else content.tobytes()

    def _kind(self, raw: Any) -> str:
        code = self.model.OperatorCodes(raw.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = _KIND_NAMES.get(number, f"builtin {number}")
        if kind == "CUSTOM":
            return f"custom {_printable(code.CustomCode() or b'?')}"
        return str(kind)


def _widen_weights(op: Op) -> int:
    """Dynamic-range models: int8 weights under float activations become float32 constants.

    TFLM refuses such models; LiteRT quantizes the activations on the fly instead, so that its
    results differ by about 1 % of the range.

    Returns:
        The bytes by which the constants grew.
    """
    grown = 0
    source = op.inputs[0] if op.inputs else None
    if source is None or source.dtype != np.float32:
        return grown
    for position, tensor in enumerate(op.inputs):
        if tensor is None or tensor.data is None or tensor.dtype != np.int8:
            continue
        scales = tensor.quantization
        if scales is None:
            raise ModelError(f"tensor {tensor.name} is int8 without a scale; quantize the model")
        shape = [1] * len(tensor.shape)
        shape[scales.axis] = scales.scale.size
        centred = tensor.data.astype(np.float32) - scales.zero_point.reshape(shape)
        data = (centred * scales.scale.reshape(shape)).astype(np.float32)
        op.inputs[position] = Tensor(tensor.name, tensor.shape, np.dtype(np.float32), None, data)
        grown += data.nbytes - tensor.nbytes
    return grown


def _make_unique(tensors: list[Tensor]) -> None:
    """Reports and arenas tell tensors apart by name."""
    seen: set[str] = set()
    for index, tensor in enumerate(tensors):
        if tensor.name in seen:
            tensor.name = f"{tensor.name}_{index}"
        seen.add(tensor.name)
