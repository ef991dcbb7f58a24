"""Functions of one, two or three elements: arithmetic, activations, comparisons, logic, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from covp.errors import ModelError
from covp.graph.attributes import Elementwise, LeakyRelu
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.binary import BitShift, Mod
from covp.graph.ops.unary import Gelu, IsInfinite, Parameters


@register("Add", "Sub", "Mul")
def _binary(node: OnnxNode, importer: Importer) -> Tensor:
    return importer.add(node.kind.upper(), node.input(0), node.input(1), attributes=Elementwise())


_UNARY = {
    "Abs": "ABS",
    "Acos": "ACOS",
    "Acosh": "ACOSH",
    "Asin": "ASIN",
    "Asinh": "ASINH",
    "Atan": "ATAN",
    "Atanh": "ATANH",
    "BitwiseNot": "BITWISE_NOT",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Cosh": "COSH",
    "Erf": "ERF",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "HardSwish": "HARD_SWISH",
    "IsNaN": "IS_NAN",
    "Log": "LOG",
    "Mish": "MISH",
    "Neg": "NEG",
    "Not": "LOGICAL_NOT",
    "Reciprocal": "RECIPROCAL",
    "Round": "ROUND",
    "Sigmoid": "LOGISTIC",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sinh": "SINH",
    "Softplus": "SOFTPLUS",
    "Softsign": "SOFTSIGN",
    "Sqrt": "SQRT",
    "Tan": "TAN",
    "Tanh": "TANH",
}
_BINARY = {
    "And": "LOGICAL_AND",
    "BitwiseAnd": "BITWISE_AND",
    "BitwiseOr": "BITWISE_OR",
    "BitwiseXor": "BITWISE_XOR",
    "Div": "DIV",
    "Equal": "EQUAL",
    "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessOrEqual": "LESS_EQUAL",
    "Or": "LOGICAL_OR",
    "Pow": "POW",
    "PRelu": "PRELU",
    "Xor": "LOGICAL_XOR",
}
_TO_BOOL = ("Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual")
_ATTRIBUTES: dict[str, tuple[str, Callable[[OnnxNode], Any]]] = {
    "BitShift": ("BIT_SHIFT", lambda n: BitShift(n.get("direction", "").upper() == "LEFT")),
    "Celu": ("CELU", lambda n: Parameters(n.get("alpha", 1.0))),
    "Elu": ("ELU", lambda n: Parameters(n.get("alpha", 1.0))),
    "Gelu": ("GELU", lambda n: Gelu(n.get("approximate", "none") == "tanh")),
    "HardSigmoid": (
        "HARD_SIGMOID",
        lambda n: Parameters(n.get("alpha", 0.2), n.get("beta", 0.5)),
    ),
    "IsInf": (
        "IS_INF",
        lambda n: IsInfinite(bool(n.get("detect_negative", 1)), bool(n.get("detect_positive", 1))),
    ),
    "LeakyRelu": ("LEAKY_RELU", lambda n: LeakyRelu(n.get("alpha", 0.01))),
    "Mod": ("MOD", lambda n: Mod(bool(n.get("fmod", 0)))),
    "Selu": (
        "SELU",
        lambda n: Parameters(
            n.get("alpha", 1.67326319217681884765625), n.get("gamma", 1.05070102214813232421875)
        ),
    ),
    "Shrink": ("SHRINK", lambda n: Parameters(n.get("bias", 0.0), n.get("lambd", 0.5))),
    "Swish": ("SWISH", lambda n: Parameters(n.get("alpha", 1.0))),
    "ThresholdedRelu": ("THRESHOLDED_RELU", lambda n: Parameters(n.get("alpha", 1.0))),
}
"""Kind and attributes of each ONNX operator."""


@register(*_UNARY, *_BINARY)
def _simple(node: OnnxNode, importer: Importer) -> Tensor:
    kind = _UNARY.get(node.kind) or _BINARY[node.kind]
    dtype = np.bool_ if node.kind in _TO_BOOL else None
    inputs = [node.input(position) for position in range(len(node.inputs))]
    if node.kind == "PRelu":
        inputs[1] = _slope(inputs[0], inputs[1], importer)
    return importer.add(kind, *inputs, dtype=dtype)


def _slope(source: Tensor, slope: Tensor, importer: Importer) -> Tensor:
    """Reshape an old opset's slope per channel to (C, 1, 1); newer opsets broadcast it as it is."""
    if len(slope.shape) == 1 and len(source.shape) > 2 and slope.size == source.shape[1] > 1:
        last = source.shape[-1]
        if slope.size != last:
            return importer.reshape(slope, (slope.size, *[1] * (len(source.shape) - 2)))
    return slope


@register(*_ATTRIBUTES)
def _with_attributes(node: OnnxNode, importer: Importer) -> Tensor:
    kind, attributes = _ATTRIBUTES[node.kind]
    dtype = np.bool_ if node.kind in _TO_BOOL else None
    return importer.add(kind, *node.inputs, attributes=attributes(node), dtype=dtype)


@register("Relu")
def _relu(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    if source.dtype == np.float32:
        return importer.add("RELU", source)
    return importer.add("MAXIMUM", source, importer.constant(np.zeros((), source.dtype)))


@register("Clip")
def _clip(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    bounds = [node.optional(1), node.optional(2)]
    for position, name in enumerate(("min", "max")):
        if name in node.attributes:  # before opset 11
            value = np.array(node.attributes[name], source.dtype)
            bounds[position] = importer.constant(value)
    kind = _RECTIFIERS.get(tuple(None if t is None else _value(t) for t in bounds))
    if source.dtype == np.float32:
        if kind is not None:
            return importer.add(kind, source)  # joins the layer before
        # the standard's values of missing limits: infinities become the largest numbers
        ends = np.finfo(np.float32).min, np.finfo(np.float32).max
        bounds = [
            importer.constant(np.array(end)) if bound is None else bound
            for bound, end in zip(bounds, ends, strict=True)
        ]
    return source if bounds == [None, None] else importer.add("CLIP", source, *bounds)


_RECTIFIERS: dict[tuple[float | None, ...], str] = {
    (0.0, None): "RELU",
    (0.0, np.inf): "RELU",
    (0.0, 6.0): "RELU6",
}


def _value(tensor: Tensor) -> float:
    """Return a constant's value, or NaN, which equals nothing, if it comes at run time."""
    return float("nan") if tensor.data is None else float(tensor.data.reshape(-1)[0])


@register("Max", "Min", "Sum", "Mean")
def _of_several(node: OnnxNode, importer: Importer) -> Tensor:
    kind = {"Max": "MAXIMUM", "Min": "MINIMUM"}.get(node.kind, "ADD")
    attributes = Elementwise() if kind == "ADD" else None
    result = node.input(0)
    for position in range(1, len(node.inputs)):
        result = importer.add(kind, result, node.input(position), attributes=attributes)
    if node.kind == "Mean":
        share = importer.constant(np.array(1 / len(node.inputs), result.dtype))
        result = importer.add("MUL", result, share, attributes=Elementwise())
    return result


@register("Where")
def _where(node: OnnxNode, importer: Importer) -> Tensor:
    chosen = node.input(1)
    return importer.add("SELECT_V2", node.input(0), chosen, node.input(2), dtype=chosen.dtype)


@register("Cast", "CastLike")
def _cast(node: OnnxNode, importer: Importer) -> Tensor:
    if node.kind == "CastLike":
        dtype: Any = node.input(1).dtype
    else:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(node.get("to", 0))
    if dtype == node.input(0).dtype:
        return node.input(0)
    if dtype.name not in _CASTS:
        raise ModelError(f"a cast to {dtype}, which is not supported; known: {', '.join(_CASTS)}")
    return importer.add("CAST", node.input(0), dtype=dtype)


_CASTS = (
    "float32",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
)
