"""Quantized values: bytes of ONNX as int8 tensors of a graph that know their scale.

Kernels are for int8. A uint8 value is 128 more than the int8 one that stands for it, and so is its
zero point; `as_int8` looks for that int8 tensor where the uint8 one comes from, so that conversions
are left at the inputs and outputs of a model only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.attributes import Activation
from covp.graph.float_scaling import quantize
from covp.graph.graph import Quantization, Tensor
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.half_even import UNSIGNED
from covp.graph.ops.lookup import LookupTable
from covp.graph.quantization import activation_range

_ALL = (-128, 127)
_ACTIVATIONS: tuple[Activation, ...] = ("none", "relu", "relu6", "relu_n1_to_1")


class ScaleAndZeroPoint:
    """Scale and zero point at two positions of a node's inputs.

    Args:
        node: whose inputs they are.
        scale, zero_point: their positions.
        what: they belong to, for errors.
        like: position of a tensor of the same type, which a zero point that is left out has; None:
            it is uint8, QuantizeLinear's default.

    Attributes:
        scale: float32, shape (n,).
        zero_point: of the model's type, the same shape.
    """

    def __init__(
        self, node: OnnxNode, scale: int, zero_point: int, what: str, like: int | None = 0
    ) -> None:
        self.scale = np.asarray(node.constant(scale, f"the scale of {what}"), np.float32).reshape(
            -1
        )
        given = node.optional(zero_point)
        if given is None:
            dtype = np.dtype(np.uint8) if like is None else node.input(like).dtype
            self.zero_point: NDArray[Any] = np.zeros(self.scale.shape, dtype)
        else:
            point = node.constant(zero_point, f"the zero point of {what}").reshape(-1)
            self.zero_point = np.broadcast_to(point, self.scale.shape)
        if not (np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise ModelError(f"the scale of {what} is not positive; quantize the model again")

    @property
    def is_unsigned(self) -> bool:
        """True if values are uint8."""
        return self.zero_point.dtype == np.uint8

    @property
    def one(self) -> tuple[float, int]:
        """The scale, and the zero point of int8. Raises ModelError where there are several."""
        if self.scale.size != 1:
            raise ModelError("several scales for an activation are not supported; use one")
        return float(self.scale[0]), int(self.zero_point[0]) - UNSIGNED * self.is_unsigned

    @property
    def quantization(self) -> Quantization:
        """Scale and zero point of the values as int8."""
        scale, zero_point = self.one
        return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))


def as_int8(importer: Importer, tensor: Tensor, parameters: ScaleAndZeroPoint) -> Tensor:
    """Return the int8 tensor with this quantization that holds a value's bytes."""
    wanted = parameters.quantization
    if tensor.dtype == np.uint8:
        tensor = shift_to_int8(importer, tensor, wanted)
    if tensor.dtype != np.int8:
        raise ModelError(
            f"tensor {tensor.name} is {tensor.dtype}; int8 and uint8 are supported",
            tensor=tensor.name,
        )
    made = any(tensor is output for op in importer.ops for output in op.outputs)
    if tensor.quantization is None and not made:
        tensor.quantization = wanted
        return tensor
    if tensor.quantization is not None and (tensor.scale, tensor.zero_point) == (
        float(wanted.scale[0]),
        int(wanted.zero_point[0]),
    ):
        return tensor
    # the same bytes, reinterpreted
    return importer.add("RESHAPE", tensor, shape=tensor.shape, quantization=wanted)


def finish(
    importer: Importer, result: Tensor, parameters: ScaleAndZeroPoint, limits: tuple[int, int]
) -> Tensor:
    """Return an int8 result between limits, as the type that the model states."""
    if limits != _ALL:
        clamped = np.arange(-128, 128).clip(*limits)
        result = importer.add(
            "LOOKUP_TABLE",
            result,
            attributes=LookupTable(tuple(int(v) for v in clamped), "Clip"),
            quantization=parameters.quantization,
        )
    return given_out(importer, result, parameters)


def given_out(importer: Importer, tensor: Tensor, parameters: ScaleAndZeroPoint) -> Tensor:
    """Return an int8 result as the type that the model states."""
    if not parameters.is_unsigned or tensor.quantization is None:
        return tensor
    return importer.add(
        "QUANTIZE",
        tensor,
        dtype=np.uint8,
        quantization=shift_zero_point(tensor.quantization, UNSIGNED),
    )


def shift_zero_point(quantization: Quantization, by: int) -> Quantization:
    return Quantization(quantization.scale, quantization.zero_point + np.int32(by))


def shift_to_int8(importer: Importer, tensor: Tensor, wanted: Quantization) -> Tensor:
    """Return the int8 tensor that is 128 less than a uint8 one."""
    if tensor.data is not None:
        data = (tensor.data.astype(np.int64) - UNSIGNED).astype(np.int8)
        return importer.constant(data, tensor.name)
    found = importer.signed.get(tensor)
    if found is None:
        found = importer.signed[tensor] = _convert(importer, tensor, wanted)
    return found


def _convert(importer: Importer, tensor: Tensor, wanted: Quantization) -> Tensor:
    producer = next((op for op in reversed(importer.ops) if op.outputs[0] is tensor), None)
    if producer is not None and producer.kind == "QUANTIZE":
        source, scaled = producer.input(0), tensor.quantization
        assert scaled is not None
        if source.dtype == np.int8:
            return source
        if source.dtype == np.float32:
            return importer.add(
                "QUANTIZE",
                source,
                dtype=np.int8,
                quantization=shift_zero_point(scaled, -UNSIGNED),
                rounding=producer.rounding,
            )
    if tensor.quantization is None:
        tensor.quantization = shift_zero_point(wanted, UNSIGNED)
    return importer.add(
        "QUANTIZE",
        tensor,
        dtype=np.int8,
        quantization=shift_zero_point(tensor.quantization, -UNSIGNED),
    )


def limits_of(node: OnnxNode, parameters: ScaleAndZeroPoint) -> tuple[int, int]:
    """Return the least and the largest int8 that a Relu or Clip after the operator leaves."""
    scale, zero_point = parameters.one
    limits = list(_ALL)
    for i, name in enumerate(("clip_low", "clip_high")):
        if node.get(name) is not None:
            level = np.float32(node.get(name))
            limits[i] = int(quantize(level, scale, zero_point, np.dtype(np.int8)))
    return limits[0], limits[1]


def is_fused(node: OnnxNode, parameters: ScaleAndZeroPoint) -> bool:
    """Return whether onnxruntime fuses an operator despite a Relu or Clip before QuantizeLinear.

    It drops what the quantization's range implies: core/optimizer/qdq_transformer/
    clip_quantizelinear.cc and relu_quantizelinear.cc. Other operators stay in float32 there.
    """
    scale, zero_point = parameters.one
    least, most = (np.float32(scale) * np.float32(end - zero_point) for end in _ALL)
    epsilon = np.finfo(np.float32).eps
    low, high = node.get("clip_low"), node.get("clip_high")
    if low is not None and np.float32(low) - least > epsilon:
        return False
    return high is None or bool(most - np.float32(high) <= epsilon)


def activation_of(
    node: OnnxNode, parameters: ScaleAndZeroPoint
) -> tuple[Activation, tuple[int, int]]:
    """Return a fused activation for a Relu or Clip after the operator; else limits for `finish`."""
    limits = limits_of(node, parameters)
    for name in _ACTIVATIONS:
        if activation_range(name, *parameters.one, np.dtype(np.int8)) == limits:
            return name, _ALL
    return "none", limits
