"""ONNX operators into those of a graph: one function an operator, or a group of like ones.

A function under ``@register("Kind")`` in one of these files teaches the reader a new operator.
"""

# each of these registers its converters
import covp.graph.onnx.converters.attention
import covp.graph.onnx.converters.constants
import covp.graph.onnx.converters.gather
import covp.graph.onnx.converters.moves
import covp.graph.onnx.converters.normalizations
import covp.graph.onnx.converters.pointwise
import covp.graph.onnx.converters.pools
import covp.graph.onnx.converters.products
import covp.graph.onnx.converters.quantized
import covp.graph.onnx.converters.quantized_elementwise
import covp.graph.onnx.converters.quantized_layers
import covp.graph.onnx.converters.recurrent
import covp.graph.onnx.converters.reductions
import covp.graph.onnx.converters.resize
import covp.graph.onnx.converters.selection
import covp.graph.onnx.converters.windows  # noqa: F401
from covp.graph.onnx.converters.quantized import on_int8
from covp.graph.onnx.converters.registry import (
    CONVERTERS,
    Converter,
    register,
    unknown_operator,
)
from covp.graph.onnx.fuse_qdq import MOVERS

__all__ = ["CONVERTERS", "Converter", "register", "unknown_operator"]

CONVERTERS.update({key: on_int8(CONVERTERS[key]) for key in list(CONVERTERS) if key[1] in MOVERS})
