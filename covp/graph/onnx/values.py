"""Values in an ONNX model as numpy arrays and Python values, with bounds on damaged ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from numpy.typing import NDArray

from covp.errors import ModelError

_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_DTYPES = {name: np.dtype(name) for name in ("float32", *_INTEGERS, "bool")}
_ADVICE = {
    "float16": "; convert the model to float32, or quantize it",
    "bfloat16": "; convert the model to float32, or quantize it",
    "float64": "; convert the model to float32",
    "string": "; leave text processing out of the model",
}


_NIBBLES: dict[int, np.dtype[Any]] = {
    onnx.TensorProto.INT4: np.dtype(np.int8),
    onnx.TensorProto.UINT4: np.dtype(np.uint8),
}


def bits_of(tensor: onnx.TensorProto) -> int | None:
    """Return 4 for a 4-bit constant, which `array_of` widens, else None."""
    return 4 if tensor.data_type in _NIBBLES else None


def array_of(tensor: onnx.TensorProto) -> NDArray[Any]:
    """Return a constant; of int4 and uint4 as int8 and uint8.

    Raises ModelError: its type is not supported, or its bytes do not fit it.
    """
    dtype = _NIBBLES.get(int(tensor.data_type))
    if dtype is None:
        dtype = dtype_of(tensor.data_type, f"constant {tensor.name}")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ModelError(f"the data of constant {tensor.name} is in another file; read it by path")
    try:
        found = np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as error:
        raise ModelError(
            f"constant {tensor.name} is damaged: {error}", tensor=tensor.name
        ) from None
    if found.shape != tuple(tensor.dims):
        raise ModelError(
            f"constant {tensor.name} is damaged: its shape is {tuple(tensor.dims)}",
            tensor=tensor.name,
        )
    return found.astype(dtype, copy=False)


def dtype_of(number: int, what: str) -> np.dtype[Any]:
    """Return the type of a TensorProto's number.

    Args:
        number: as the model states it.
        what: has the type, for the error.
    """
    try:
        name = onnx.helper.tensor_dtype_to_np_dtype(number).name
    except Exception:
        raise ModelError(f"{what} is of the unknown type {number}") from None
    name = "string" if name == "object" else name
    if name not in _DTYPES:
        advice = _ADVICE.get(name, f"; known: {', '.join(_DTYPES)}")
        raise ModelError(f"{what} is of type {name}, which is not supported{advice}")
    return _DTYPES[name]


def attribute_of(proto: onnx.AttributeProto) -> Any:
    """Return an attribute's value: int, float, str, numpy array, list, or a GraphProto."""
    if proto.ref_attr_name:
        raise ModelError(f"attribute {proto.name} refers to {proto.ref_attr_name} of no function")
    if proto.type == onnx.AttributeProto.TENSOR:
        return array_of(proto.t)
    try:
        value = onnx.helper.get_attribute_value(proto)
    except ValueError:
        raise ModelError(f"attribute {proto.name} is of the unknown type {proto.type}") from None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if proto.type == onnx.AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in value]
    return list(value) if isinstance(value, Sequence) else value


def stated_extents(shape: onnx.TensorShapeProto) -> list[int | None]:
    """Return the extent of each axis; None for one that is left open."""
    return [
        int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else None
        for d in shape.dim
    ]


def stated_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Return the static shapes that a graph states of its own values, by name."""
    shapes = {}
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        extents = stated_extents(tensor.shape)
        known = [extent for extent in extents if extent is not None]
        if tensor.HasField("shape") and len(known) == len(extents):
            shapes[value.name] = tuple(known)
    return shapes


def check_size(shape: Sequence[int], dtype: np.dtype[Any], most: int, what: str) -> None:
    """Raise ModelError for a tensor of more than ``most`` bytes or more axes than numpy has, or
    of less than no elements, as of a window that is larger than its image."""
    if min(shape, default=0) < 0:
        raise ModelError(f"{what} would have the shape {tuple(shape)}: its input is too small")
    if math.prod(shape) * dtype.itemsize > most or len(shape) > 32:
        raise ModelError(f"{what} of shape {tuple(shape)} is larger than a core's memory")
