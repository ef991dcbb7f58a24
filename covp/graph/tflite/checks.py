"""All that kernels rely on, checked before an operator of a file becomes part of a graph."""

from __future__ import annotations

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition

# TFLM and LiteRT write with this scale and zero point, whatever the file says
_FIXED_OUTPUTS = {
    "int8": {
        "L2_NORMALIZATION": (1 / 128, 0),
        "LOGISTIC": (1 / 256, -128),
        "LOG_SOFTMAX": (16 / 256, 127),
        "SOFTMAX": (1 / 256, -128),
        "TANH": (1 / 128, 0),
    },
    "int16": dict.fromkeys(("LOGISTIC", "SOFTMAX", "TANH"), (1 / 32768, 0)),
}
_FINE_SOFTMAX = (1 / 65536, -32768)  # int16 from int8
_NEARLY = 0.001  # of its scale, in TFLM's check


def check_op(op: Op) -> None:
    """Check what kernels rely on: scales, types, shapes. Raises ModelError if it fails."""
    definition(op.kind).types(op)
    for tensor in (op.input(1) if op.kind == "SPLIT" else op.input(0), *op.outputs):
        _check_activation(tensor)
    _check_scales(op)
    _check_fixed_output(op)
    _check_shapes(op)


# int16 without a scale is a plain integer elsewhere
_SCALED_INT16 = frozenset(
    {"ADD", "SUB", "MUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}
    | {"LOGISTIC", "TANH", "SOFTMAX", "RELU", "RELU6", "LEAKY_RELU", "PRELU", "BATCH_MATMUL"}
    | {"SQUARED_DIFFERENCE"}
    | {"AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "QUANTIZE", "DEQUANTIZE"}
)


def _check_scales(op: Op) -> None:
    scaled = (np.int8, np.uint8, *((np.int16,) if op.kind in _SCALED_INT16 else ()))
    for tensor in (*filter(None, op.inputs), *op.outputs):
        if tensor.dtype in scaled and tensor.quantization is None:
            raise ModelError(
                f"tensor {tensor.name} is {tensor.dtype} without a scale; quantize the model",
                tensor=tensor.name,
            )


def _check_activation(tensor: Tensor) -> None:
    """Check that an activation has one scale and at least one element."""
    quantization = tensor.quantization
    if quantization is not None and quantization.per_channel and tensor.dtype.kind in "iu":
        raise ModelError(
            f"tensor {tensor.name} has a scale per channel; one is needed", tensor=tensor.name
        )
    if 0 in tensor.shape:
        raise ModelError(f"tensor {tensor.name} is empty: shape {tensor.shape}", tensor=tensor.name)


def _check_fixed_output(op: Op) -> None:
    """Raise ModelError if the kernel needs one output quantization and the model has another."""
    out = op.output
    fixed = _FIXED_OUTPUTS.get(out.dtype.name, {}).get(op.kind)
    scale = out.scale if fixed else 0.0
    if op.kind == "SOFTMAX" and op.input(0).dtype == np.int8 and out.dtype == np.int16:
        fixed = _FINE_SOFTMAX
        scale = fixed[0] if abs(scale / fixed[0] - 1) < _NEARLY else scale
    if fixed and (scale, out.zero_point) != fixed:
        raise ModelError(
            f"its output has scale {out.scale:g} and zero point {out.zero_point}, which must be "
            f"{fixed[0]:g} and {fixed[1]}; convert the model again"
        )


def _check_shapes(op: Op) -> None:
    shapes = definition(op.kind).infer_shapes(op)
    stated = [tensor.shape for tensor in op.outputs]
    if shapes != stated:
        raise ModelError(f"its output should have shape {shapes[0]}, the file says {stated[0]}")


def check_order(graph: Graph) -> None:
    """Raise ModelError if an operator reads an unknown tensor or writes one that is known."""
    for source in graph.inputs:
        if source.data is not None:
            raise ModelError(f"input {source.name} has values of its own; it cannot be a constant")
    known = {id(tensor) for tensor in (*graph.inputs, *(s.before for s in graph.states))}
    for op in graph.ops:
        for tensor in op.inputs:
            if tensor is not None and tensor.data is None and id(tensor) not in known:
                raise ModelError(
                    f"operator {op.index} ({op.kind}) reads {tensor.name} before it is computed"
                )
        for output in op.outputs:
            if output.data is not None or id(output) in known:
                what = "a constant" if output.data is not None else "an input or computed already"
                raise ModelError(
                    f"operator {op.index} ({op.kind}) writes {output.name}, which is {what}"
                )
            known.add(id(output))
