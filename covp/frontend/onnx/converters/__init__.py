"""ONNX operators into those of a graph: one function an operator, or a group of like ones.

A function under ``@register("Kind")`` in one of these files teaches the reader a new operator.
"""

# each of these registers its converters
import covp.frontend.onnx.converters.arithmetic
import covp.frontend.onnx.converters.attention
import covp.frontend.onnx.converters.constants
import covp.frontend.onnx.converters.gather
import covp.frontend.onnx.converters.moves
import covp.frontend.onnx.converters.normalizations
import covp.frontend.onnx.converters.pointwise
import covp.frontend.onnx.converters.pools
import covp.frontend.onnx.converters.products
import covp.frontend.onnx.converters.quantized
import covp.frontend.onnx.converters.quantized_elementwise
import covp.frontend.onnx.converters.quantized_layers
import covp.frontend.onnx.converters.recurrent
import covp.frontend.onnx.converters.reductions
import covp.frontend.onnx.converters.resize
import covp.frontend.onnx.converters.selection
import covp.frontend.onnx.converters.shapes
import covp.frontend.onnx.converters.windows  # noqa: F401
from covp.frontend.onnx.converters.quantized import on_int8
from covp.frontend.onnx.converters.registry import (
    CONVERTERS,
    Converter,
    register,
    unknown_operator,
)
from covp.frontend.onnx.fuse_qdq import MOVERS

__all__ = ["CONVERTERS", "Converter", "register", "unknown_operator"]

CONVERTERS.update({key: on_int8(CONVERTERS[key]) for key in list(CONVERTERS) if key[1] in MOVERS})
