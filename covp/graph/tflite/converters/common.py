"""Helpers of converters: typed options, constants, axes, paddings; and their registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tflite

from covp.base.registry import Registry
from covp.errors import ModelError
from covp.graph.attributes import Activation, Padding, Pair
from covp.graph.graph import Op, Tensor

Converter = Callable[[Op, Any], Any]
"""From an operator, whose tensors are set, and the flatbuffer table of its options to its
`Op.attributes`."""

CONVERTERS: Registry[str, Converter] = Registry("covp.graph.tflite.converters")
"""The converter of each kind of operator."""

_ACTIVATIONS: dict[int, Activation] = {
    tflite.ActivationFunctionType.NONE: "none",
    tflite.ActivationFunctionType.RELU: "relu",
    tflite.ActivationFunctionType.RELU6: "relu6",
    tflite.ActivationFunctionType.RELU_N1_TO_1: "relu_n1_to_1",
}


def register(*kinds: str) -> Callable[[Converter], Converter]:
    """Make a function the converter of some kinds of operators."""

    def add(convert: Converter) -> Converter:
        CONVERTERS.update(dict.fromkeys(kinds, convert))
        return convert

    return add


def options_of(kind: type[Any], table: Any) -> Any:
    """Return the typed view of an options table; defaults where the file leaves the table out."""
    if table is None:
        raise ModelError("its options are missing; convert the model again")
    options = kind()
    options.Init(table.Bytes, table.Pos)
    return options


def activation_of(number: int) -> Activation:
    try:
        return _ACTIVATIONS[number]
    except KeyError:
        raise ModelError(
            f"fused activation {number} is not supported; known: "
            + ", ".join(_ACTIVATIONS.values())
        ) from None


def image_size(tensor: Tensor) -> Pair:
    if len(tensor.shape) != 4:
        raise ModelError(
            f"tensor {tensor.name} has shape {tensor.shape}; NHWC is needed", tensor=tensor.name
        )
    return tensor.shape[1], tensor.shape[2]


def constant_integers(op: Op, position: int, what: str) -> list[int]:
    tensor = op.input(position)
    if tensor.data is None:
        raise ModelError(f"{what} ({tensor.name}) must be constant")
    return [int(value) for value in np.asarray(tensor.data).reshape(-1)]


def positive(pair: Pair, what: str) -> Pair:
    if min(pair) < 1:
        raise ModelError(f"{what} {pair} is not positive")
    return pair


def same_padding(size: Pair, window: Pair, stride: Pair) -> Padding:
    """Return the least padding of SAME, the odd pixel at the end: ComputePaddingHeightWidth."""
    total = [
        max((-(-extent // step) - 1) * step + reach - extent, 0)
        for extent, reach, step in zip(size, window, stride, strict=True)
    ]
    top, left = total[0] // 2, total[1] // 2
    return Padding(top, total[0] - top, left, total[1] - left)


def padding_of(kind: int, size: Pair, window: Pair, stride: Pair) -> Padding:
    if kind == tflite.Padding.VALID:
        return Padding()
    if kind != tflite.Padding.SAME:
        raise ModelError(f"padding {kind} is not supported")
    return same_padding(size, window, stride)


def dilated_size(kernel: Pair, dilation: Pair) -> Pair:
    """Return the rows and columns that a dilated kernel reaches over."""
    return (kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1


def constant_axes(op: Op, position: int, rank: int) -> tuple[int, ...]:
    axes = constant_integers(op, position, "the axes")
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelError(f"axes {axes} are outside a tensor of rank {rank}")
    return tuple(sorted({axis % rank for axis in axes}))


def checked_axis(value: int, rank: int) -> int:
    if not -rank <= value < rank:
        raise ModelError(f"axis {value} is outside a tensor of rank {rank}")
    return value % rank


def no_attributes(op: Op, table: Any) -> None:
    return None
