"""QuantizeLinear, DequantizeLinear, and what `fuse_qdq` makes of single values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from covp.errors import ModelError
from covp.graph.float_scaling import dequantize, quantize
from covp.graph.graph import Quantization, Rounding, Tensor
from covp.graph.onnx.converters.quantized_at_run_time import (
    dequantize_by_definition,
    quantize_by_definition,
)
from covp.graph.onnx.converters.registry import Converter, register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.proto_graph import OWN_DOMAIN
from covp.graph.onnx.quantized_values import (
    ScaleAndZeroPoint,
    as_int8,
    finish,
    given_out,
    limits_of,
    shift_to_int8,
    shift_zero_point,
)
from covp.graph.ops.half_even import UNSIGNED
from covp.graph.ops.lookup import LookupTable

MICROSOFT = "com.microsoft"
ROUNDING = Rounding("onnxruntime")
EVERY_BYTE = np.arange(-128, 128).astype(np.int8)


@register("QuantizeLinear")
def _quantize(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    known = all_constant(node, 1, 2) and node.input(1).size == 1
    if importer.defined or not known or source.dtype != np.float32:
        return quantize_by_definition(node, importer)
    to = ScaleAndZeroPoint(node, 1, 2, "the output", like=None)
    if to.zero_point.dtype.name not in ("int8", "uint8", "int16") or node.get("output_dtype", 0):
        return quantize_by_definition(node, importer)
    point = np.array([int(to.zero_point[0])], np.int32)
    return importer.add(
        "QUANTIZE",
        source,
        dtype=to.zero_point.dtype,
        quantization=Quantization(to.scale, point),
        rounding=ROUNDING,
    )


@register("DequantizeLinear")
def _dequantize(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    several = node.input(1).size != 1
    if importer.defined or not all_constant(node, 1, 2) or node.get("block_size", 0):
        return dequantize_by_definition(node, importer)
    of = ScaleAndZeroPoint(node, 1, 2, "the input")
    if source.data is not None:
        return importer.constant(_dequantized_constant(node, of, source))
    if several or source.dtype.name not in ("int8", "uint8"):
        return dequantize_by_definition(node, importer)
    return importer.add(
        "DEQUANTIZE", as_int8(importer, source, of), dtype=np.float32, rounding=ROUNDING
    )


def all_constant(node: OnnxNode, *positions: int) -> bool:
    """Return whether the inputs at these positions are constants or left out."""
    given = [node.optional(position) for position in positions]
    return all(tensor is None or tensor.constant for tensor in given)


def _dequantized_constant(
    node: OnnxNode, of: ScaleAndZeroPoint, source: Tensor
) -> NDArray[np.float32]:
    assert source.data is not None
    shape: tuple[int, ...] = (1,) * len(source.shape)
    if of.scale.size > 1:
        axis = node.get("axis", 1) % len(shape)
        shape = (*shape[:axis], of.scale.size, *shape[axis + 1 :])
    point = of.zero_point.astype(np.int64).reshape(shape)
    centred = (source.data.astype(np.int64) - point).astype(np.float32)
    return np.asarray(centred * of.scale.reshape(shape), np.float32)


@register("Requantize", domain=OWN_DOMAIN)
def _requantize(node: OnnxNode, importer: Importer) -> Tensor:
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    source = as_int8(importer, node.input(0), of)
    result = importer.add("QUANTIZE", source, quantization=to.quantization, rounding=ROUNDING)
    return given_out(importer, result, to)


@register("Table", domain=OWN_DOMAIN)
def _table(node: OnnxNode, importer: Importer) -> Tensor:
    """Return a function's results for every byte, as the reader computes constants."""
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    function = node.attributes["function"]
    values = dequantize(EVERY_BYTE, *of.one)
    return lookup(
        node, importer, of, to, _results(function, values, importer), function.node[0].op_type
    )


def _results(
    function: onnx.GraphProto, values: NDArray[np.float32], importer: Importer
) -> NDArray[np.float32]:
    """Return the results of a graph of one node for the values of its input ``x``."""
    graph = onnx.GraphProto()
    graph.CopyFrom(function)
    graph.initializer.append(numpy_helper.from_array(values, "x"))
    opset = onnx.helper.make_opsetid("", int(function.doc_string))
    assert importer.read is not None
    model = importer.read(onnx.helper.make_model(graph, opset_imports=[opset]))
    result = model.ops[-1].input(0).data
    if result is None or result.shape != values.shape:
        raise ModelError(f"{function.node[0].op_type} is not a function of one value")
    return result


def lookup(
    node: OnnxNode,
    importer: Importer,
    of: ScaleAndZeroPoint,
    to: ScaleAndZeroPoint,
    values: NDArray[np.float32],
    name: str,
) -> Tensor:
    """Return a table of float32 results, quantized."""
    scale, point = to.one
    results = quantize(values, scale, point, np.dtype(np.int8))
    table = LookupTable(tuple(int(v) for v in results), name)
    source = as_int8(importer, node.input(0), of)
    result = importer.add("LOOKUP_TABLE", source, attributes=table, quantization=to.quantization)
    return finish(importer, result, to, limits_of(node, to))


def on_int8(convert: Converter) -> Converter:
    """Return a converter of an operator that moves or compares values, for quantized ones.

    Its first input is given as int8, and its results have that input's quantization. The
    attribute ``unsigned`` says that other numbers of the node are of uint8.
    """

    def wrapper(node: OnnxNode, importer: Importer) -> Sequence[Tensor | None]:
        source = node.optional(0)
        scaled = source.quantization if source is not None else None
        if source is None or scaled is None or source.dtype not in (np.int8, np.uint8):
            found = convert(node, importer)
            return [found] if isinstance(found, Tensor) else found
        unsigned = source.dtype == np.uint8
        if unsigned:
            source = shift_to_int8(importer, source, shift_zero_point(scaled, -UNSIGNED))
        attributes = {**node.attributes, "unsigned": int(unsigned)}
        inputs = [source, *node.inputs[1:]]
        found = convert(replace(node, inputs=inputs, attributes=attributes), importer)
        results = []
        for result in [found] if isinstance(found, Tensor) else found:
            if result is not None and result.dtype == np.int8:
                if result.quantization is None:
                    result = importer.add(
                        "RESHAPE", result, shape=result.shape, quantization=source.quantization
                    )
                if unsigned:
                    result = importer.add("QUANTIZE", result, dtype=np.uint8, quantization=scaled)
            results.append(result)
        return results

    return wrapper
