"""`SubgraphTensors`: the tensors of a subgraph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from covp.errors import ModelError, printable
from covp.graph.graph import Quantization, Tensor
from covp.graph.tflite.flatbuffer import TfliteFile
from covp.graph.tflite.unsigned import shift_to_int8

_MOST_AXES = 8  # of LiteRT's kernels
_DTYPES = {
    tflite.TensorType.FLOAT32: np.float32,
    tflite.TensorType.INT4: np.int8,
    tflite.TensorType.INT8: np.int8,
    tflite.TensorType.UINT8: np.uint8,
    tflite.TensorType.INT16: np.int16,
    tflite.TensorType.INT32: np.int32,
    tflite.TensorType.INT64: np.int64,
    tflite.TensorType.BOOL: np.bool_,
}
_TYPE_NAMES = {v: k for k, v in vars(tflite.TensorType).items() if isinstance(v, int)}


class SubgraphTensors:
    """The tensors of a subgraph by index, each read when an operator or the graph names it.

    Files also list tensors that nothing uses, of any type and shape. Quantized uint8 is int8 here.

    Attributes:
        unsigned: ids of tensors that are uint8 in the file.
        expanded_bytes: by which constants of float16 grew as float32.
    """

    def __init__(self, file: TfliteFile, subgraph: Any) -> None:
        self._file = file
        self._subgraph = subgraph
        self._names = _unique([self._name(i) for i in file.range(subgraph.TensorsLength())])
        self._read: dict[int, Tensor] = {}
        self.unsigned: set[int] = set()
        self.expanded_bytes = 0

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> Tensor:
        if index not in self._read:
            stated = self._tensor(index)
            self._read[index] = tensor = shift_to_int8(stated)
            if tensor is not stated:
                self.unsigned.add(id(tensor))
        return self._read[index]

    def __setitem__(self, index: int, tensor: Tensor) -> None:
        self._read[index] = tensor

    def is_variable(self, index: int) -> bool:
        """Return whether the tensor keeps its value from one inference to the next."""
        return bool(self._subgraph.Tensors(index).IsVariable())

    def unused_name(self, wanted: str) -> str:
        """Return ``wanted``, or a name derived from it, that no tensor of the file has."""
        self._names = _unique([*self._names, wanted])
        return self._names.pop()

    def _name(self, index: int) -> str:
        return printable(self._subgraph.Tensors(index).Name() or b"") or f"tensor_{index}"

    def _tensor(self, index: int) -> Tensor:
        raw = self._subgraph.Tensors(index)
        name = self._names[index]
        shape = tuple(int(raw.Shape(i)) for i in self._file.range(raw.ShapeLength()))
        if raw.Type() == tflite.TensorType.FLOAT16 and self._file.content(raw.Buffer()):
            return self._widen(raw, name, shape)
        if raw.Type() not in _DTYPES:
            kind = _TYPE_NAMES.get(raw.Type(), f"type {raw.Type()}")
            raise ModelError(
                f"tensor {name} is {kind.lower()}, which is not supported; convert the model to "
                "int8 (full integer quantization) or float32",
                tensor=name,
            )
        dtype: np.dtype[Any] = np.dtype(_DTYPES[raw.Type()])
        _check_shape(name, shape, dtype)
        scaled = _quantization(raw, name, shape)
        if scaled is not None and dtype.kind in "iu":
            info, points = np.iinfo(dtype), scaled.zero_point
            if points.min() < info.min or points.max() > info.max:
                raise ModelError(f"tensor {name} has a zero point outside {dtype}", tensor=name)
        if raw.Type() == tflite.TensorType.INT4:
            return Tensor(name, shape, dtype, scaled, self._nibbles(raw, name, shape), bits=4)
        return Tensor(name, shape, dtype, scaled, self._data(raw, shape, dtype))

    def _nibbles(self, raw: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.int8]:
        """Unpack int4 values, two a byte, the first in the lower half: UnpackDenseInt4IntoInt8."""
        content = self._file.content(raw.Buffer())
        if not content:
            raise ModelError(
                f"tensor {name} is int4 and no constant, which is not supported; convert the model "
                "with int8 activations",
                tensor=name,
            )
        packed = np.frombuffer(content, np.int8)
        values = np.stack([(packed << 4) >> 4, packed >> 4], axis=1).reshape(-1)
        return np.asarray(values[: math.prod(shape)].reshape(shape), np.int8)

    def _widen(self, raw: Any, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return a float16 constant as float32; the DEQUANTIZE after it keeps it as it is."""
        _check_shape(name, shape, np.dtype(np.float32))
        halves = self._data(raw, shape, np.dtype(np.float16))
        assert halves is not None
        self.expanded_bytes += halves.nbytes
        return Tensor(name, shape, np.dtype(np.float32), None, halves.astype(np.float32))

    def _data(self, raw: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
        content = self._file.content(raw.Buffer())
        # an empty tensor has no buffer: the shape of a scalar
        is_constant = bool(content) or 0 in shape
        return np.frombuffer(content, dtype).reshape(shape) if is_constant else None


def _check_shape(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) > _MOST_AXES:
        raise ModelError(
            f"tensor {name} has {len(shape)} axes; at most {_MOST_AXES} are supported", tensor=name
        )
    if any(extent < 0 for extent in shape):
        raise ModelError(
            f"tensor {name} has a dynamic shape {shape}; fix it when converting", tensor=name
        )
    if math.prod(shape) * dtype.itemsize >= 2**31:
        raise ModelError(
            f"tensor {name} of shape {shape} is larger than a core's memory", tensor=name
        )


def _quantization(raw: Any, name: str, shape: tuple[int, ...]) -> Quantization | None:
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
        raise ModelError(f"tensor {name} has a scale that is not a positive number", tensor=name)
    if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
        raise ModelError(
            f"tensor {name}: {scale.size} scales do not fit its shape {shape}", tensor=name
        )
    return Quantization(scale, zero_points, axis)


def _unique(names: list[str]) -> list[str]:
    """Make repeated names unique: reports and arenas tell tensors apart by name."""
    seen: set[str] = set()
    unique = []
    for index, name in enumerate(names):
        unique.append(f"{name}_{index}" if name in seen else name)
        seen.add(unique[-1])
    return unique
