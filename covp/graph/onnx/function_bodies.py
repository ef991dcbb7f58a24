"""Function bodies that the ONNX standard gives for operators: what they are composed of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnx.defs

from covp.graph.onnx.node import Node


def body_of(
    proto: onnx.NodeProto, node: Node, opsets: Mapping[str, int]
) -> onnx.FunctionProto | None:
    """The body with the node's attributes in it; None where the standard has none.

    Args:
        proto: the node as the model states it.
        node: the same with its tensors: some bodies depend on their types.
        opsets: versions of the model's domains.
    """
    version = opsets.get(node.domain, 1)
    if not onnx.defs.has(node.kind, version, node.domain):
        return None
    schema: Any = onnx.defs.get_schema(node.kind, version, node.domain)
    body = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        types = [_type_of(node, position) for position in range(len(node.inputs))]
        usable = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if not usable:
            return None
        text = schema.get_context_dependent_function_with_opset_version(
            usable[-1], proto.SerializeToString(), types
        )
    elif schema.has_function:
        usable = [v for v in schema.function_opset_versions if v <= version]
        if not usable:
            return None
        text = schema.get_function_with_opset_version(usable[-1])
    else:
        return None
    body.ParseFromString(text)
    _fill_in(body, proto, schema)
    return body


def _type_of(node: Node, position: int) -> bytes:
    tensor = node.optional(position)
    if tensor is None:
        return b""
    kind = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
    made = onnx.helper.make_tensor_type_proto(kind, tensor.shape)
    return bytes(made.SerializeToString())


def _fill_in(body: onnx.FunctionProto, proto: onnx.NodeProto, schema: Any) -> None:
    """Put the node's attributes, or their defaults, where the body refers to them."""
    given = {a.name: a for a in proto.attribute}
    for name, stated in schema.attributes.items():
        if name not in given and stated.default_value.name:
            given[name] = stated.default_value
    for inner in body.node:
        for attribute in list(inner.attribute):
            if not attribute.ref_attr_name:
                continue
            name, source = attribute.name, given.get(attribute.ref_attr_name)
            inner.attribute.remove(attribute)
            if source is not None:
                copy = onnx.AttributeProto()
                copy.CopyFrom(source)
                copy.name = name
                inner.attribute.append(copy)
