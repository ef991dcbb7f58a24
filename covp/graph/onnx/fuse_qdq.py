"""Quantized models in QDQ form: DequantizeLinear, float operator, QuantizeLinear become one node.

The nodes are those of QOperator models, QLinearConv and its kind, as onnxruntime's own transformer
makes them (core/optimizer/qdq_transformer/selectors_actions). Constants stay integers: nothing is
dequantized that an integer operator reads. What has no integer form stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper

from covp.graph.onnx.proto_graph import OWN_DOMAIN, ProtoGraph, QuantizedEdge

MICROSOFT = "com.microsoft"
MOVERS = frozenset(
    [
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "Identity",
        "MaxPool",
        "Pad",
        "ReduceMax",
        "ReduceMin",
        "Reshape",
        "Resize",
        "Slice",
        "SpaceToDepth",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "GlobalMaxPool",
    ]
)
"""Operators that keep the order of values and take integers: quantized or not is the same."""
_UNARY = frozenset(
    [
        "Abs",
        "Ceil",
        "Celu",
        "Clip",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Log",
        "Mish",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Swish",
        "Tanh",
        "ThresholdedRelu",
    ]
)
"""Operators on one quantized value, which have 256 results."""


def with_integers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its patterns replaced, or unchanged if a node is malformed."""
    if not any(node.op_type == "DequantizeLinear" for node in model.graph.node):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = ProtoGraph(changed)
    try:
        fuse_qdq(graph)
    except (
        ArithmeticError,
        IndexError,
        TypeError,
        ValueError,
    ):  # what is wrong is said where nodes are converted
        return model
    graph.write()
    return changed


def fuse_qdq(graph: ProtoGraph) -> None:
    """Replace every pattern; nodes that nothing reads any more are dropped."""
    for node in list(graph.nodes):
        if (node.op_type, node.domain) == ("QuantizeLinear", ""):
            _fuse(graph, node)
    graph.drop_unused_nodes()


def _fuse(graph: ProtoGraph, last: onnx.NodeProto) -> None:
    """Fuse the pattern that ends with a QuantizeLinear, if there is one."""
    result = graph.quantized_output(last)
    node = graph.only_producer(last.input[0])
    if result is None or node is None:
        return
    clip: onnx.NodeProto | None = None
    made: onnx.NodeProto | None = None
    if node.op_type in ("Relu", "Clip"):
        before = graph.only_producer(node.input[0])
        if before is not None and before.op_type in _PATTERNS and graph.constant_clip(node):
            clip, node = node, before
    if node.domain not in ("", "ai.onnx"):
        return
    if node.op_type == "DequantizeLinear":
        source = graph.quantized_source(node.output[0])
        if source is not None:
            made = _own("Requantize", [*source.names, *result.parameters], result)
    elif node.op_type in _PATTERNS:
        made = _PATTERNS[node.op_type](graph, node, result)
    elif node.op_type in MOVERS:
        made = _move(graph, node, result)
    elif node.op_type in _UNARY:
        made = _table(graph, node, result)
    if made is None:
        return
    if clip is not None:
        made.attribute.extend(graph.clip_limits(clip))
    made.name = made.name or node.name or last.name
    graph.replace(last, made)


def _own(kind: str, inputs: list[str], result: QuantizedEdge) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [result.name], domain=OWN_DOMAIN)


def _copy_attributes(node: onnx.NodeProto, made: onnx.NodeProto) -> onnx.NodeProto:
    made.attribute.extend(node.attribute)
    made.name = node.name
    return made


def _conv(graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge) -> onnx.NodeProto | None:
    operands = _product(graph, node, result, axis=0)
    if operands is None:
        return None
    source, weights, bias = operands
    names = [*source.names, *weights.names, *result.parameters, *([bias] if bias else [])]
    return _copy_attributes(node, helper.make_node("QLinearConv", names, [result.name]))


def _product(
    graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge, axis: int, alpha: float = 1.0
) -> tuple[QuantizedEdge, QuantizedEdge, str] | None:
    """Find input, weights and bias (empty: none) of a sum of integer products; else return None.

    Args:
        axis: of the weights, that outputs run along.
        alpha: factor of the products.
    """
    source, weights = graph.quantized_source(node.input[0]), graph.quantized_source(node.input[1])
    if source is None or weights is None or not source.per_tensor or alpha <= 0:
        return None
    shape = graph.stored_shape(weights.name)
    if shape is None or not (weights.per_tensor or graph.symmetric_along(weights, axis)):
        return None
    if len(node.input) < 3 or not node.input[2]:
        return source, weights, ""
    scales = [graph.scales(each) for each in (source, weights, result)]
    unit, step = scales[0] * scales[1] * alpha, float(scales[2][0])
    bias = graph.bias_in(node.input[2], shape[axis], unit, step)
    return None if bias is None else (source, weights, bias)


def _matmul(
    graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge
) -> onnx.NodeProto | None:
    first, second = (graph.quantized_source(name) for name in node.input)
    if first is None or second is None:
        return None
    shape = graph.stored_shape(second.name)
    if shape is not None and len(shape) == 2 and _product(graph, node, result, axis=1) is None:
        return None
    names = [*first.names, *second.names, *result.parameters]
    return _copy_attributes(node, helper.make_node("QLinearMatMul", names, [result.name]))


def _gemm(graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge) -> onnx.NodeProto | None:
    axis = 0 if graph.number(node, "transB", 0) else 1
    alpha = float(np.float32(graph.number(node, "alpha", 1.0)))
    operands = _product(graph, node, result, axis, alpha)
    if operands is None or graph.number(node, "beta", 1.0) != 1.0:
        return None
    source, weights, bias = operands
    names = [*source.names, *weights.names, bias, *result.parameters]
    made = helper.make_node("QGemm", names, [result.name], domain=MICROSOFT)
    made.attribute.extend(a for a in node.attribute if a.name != "beta")
    made.name = node.name
    return made


def _elementwise(kind: str) -> Pattern:
    def make(
        graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge
    ) -> onnx.NodeProto | None:
        sources = [graph.quantized_source(name) for name in node.input]
        if not all(s is not None and s.per_tensor for s in sources):
            return None
        names = [name for s in sources if s is not None for name in s.names]
        made = helper.make_node(kind, [*names, *result.parameters], [result.name], domain=MICROSOFT)
        return _copy_attributes(node, made)

    return make


def _unary(kind: str) -> Pattern:
    def make(
        graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge
    ) -> onnx.NodeProto | None:
        source = graph.quantized_source(node.input[0])
        if source is None or not source.per_tensor:
            return None
        names = [*source.names, *result.parameters]
        made = _copy_attributes(
            node, helper.make_node(kind, names, [result.name], domain=MICROSOFT)
        )
        if kind in ("QLinearAveragePool", "QLinearSoftmax"):
            made.attribute.append(helper.make_attribute("opset", graph.opset))
        return made

    return make


def _reduction(
    graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge
) -> onnx.NodeProto | None:
    """Return a sum or mean of integers, which no order of additions changes."""
    source = graph.quantized_source(node.input[0])
    if source is None or not source.per_tensor or not graph.all_constant(node.input[1:]):
        return None
    if graph.number(node, "noop_with_empty_axes", 0):
        return None
    names = [*source.names, *result.parameters, *node.input[1:]]
    return _copy_attributes(
        node, helper.make_node(node.op_type, names, [result.name], domain=OWN_DOMAIN)
    )


def _concat(
    graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge
) -> onnx.NodeProto | None:
    sources = [graph.quantized_source(name) for name in node.input]
    if not all(s is not None and s.per_tensor for s in sources):
        return None
    names = [name for s in sources if s is not None for name in s.names]
    made = helper.make_node(
        "QLinearConcat", [*result.parameters, *names], [result.name], domain=MICROSOFT
    )
    return _copy_attributes(node, made)


def _move(graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge) -> onnx.NodeProto | None:
    """Return the operator on integers; a requantization after it where the parameters differ.

    Several such operators in a row are one chain from DequantizeLinear to QuantizeLinear.
    """
    chain = [node]
    while (before := graph.only_producer(chain[-1].input[0])) is not None:
        if before.op_type not in MOVERS:
            break
        chain.append(before)
    source = graph.quantized_source(chain[-1].input[0])
    if source is None or not source.per_tensor or source.type != result.type:
        return None
    if any(_computes(graph, one) or len(one.output) != 1 for one in chain):
        return None
    same = graph.same_parameters(source, result)
    read = source.name
    for one in reversed(chain):
        made = onnx.NodeProto()
        made.CopyFrom(one)
        made.input[0] = read
        if one.op_type == "Pad":  # margins of 0: the zero point stands for it
            made.input[:] = [read, one.input[1], source.zero_point, *one.input[3:]]
        last = one is node and same
        made.output[0] = read = result.name if last else graph.unique(f"{one.output[0]}_moved")
        if last:
            return made
        graph.insert_before(node, made)
    return _own("Requantize", [read, *source.parameters, *result.parameters], result)


def _computes(graph: ProtoGraph, node: onnx.NodeProto) -> bool:
    """Return whether a node makes new values: weighted ones, or margins of a value other than 0."""
    if node.op_type == "Resize":
        return graph.text(node, "mode", "nearest") != "nearest"
    if node.op_type != "Pad" or graph.text(node, "mode", "constant") != "constant":
        return False
    name = node.input[2] if len(node.input) > 2 else ""
    value = graph.constant(name) if name else np.array(graph.number(node, "value", 0.0))
    return value is None or bool(value.any())


def _table(graph: ProtoGraph, node: onnx.NodeProto, result: QuantizedEdge) -> onnx.NodeProto | None:
    """Return a function of one value: the nodes are kept for its 256 results."""
    source = graph.quantized_source(node.input[0])
    if source is None or not source.per_tensor or not graph.all_constant(node.input[1:]):
        return None
    made = _own("Table", [*source.names, *result.parameters], result)
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.input[0] = "x"
    output = helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, None)
    constants = [graph.constant_proto(name) for name in node.input[1:] if name]
    function = helper.make_graph([inner], "function", [], [output], constants)
    function.doc_string = str(graph.opset)
    made.attribute.append(helper.make_attribute("function", function))
    made.name = node.name
    return made


Pattern = Callable[[ProtoGraph, onnx.NodeProto, QuantizedEdge], onnx.NodeProto | None]
_PATTERNS: dict[str, Pattern] = {
    "Add": _elementwise("QLinearAdd"),
    "AveragePool": _unary("QLinearAveragePool"),
    "Concat": _concat,
    "Conv": _conv,
    "Gemm": _gemm,
    "GlobalAveragePool": _unary("QLinearGlobalAveragePool"),
    "LeakyRelu": _unary("QLinearLeakyRelu"),
    "MatMul": _matmul,
    "Mul": _elementwise("QLinearMul"),
    "ReduceMean": _reduction,
    "ReduceSum": _reduction,
    "Sigmoid": _unary("QLinearSigmoid"),
    "Softmax": _unary("QLinearSoftmax"),
}
