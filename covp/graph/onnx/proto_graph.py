"""`ProtoGraph`: the nodes of an ONNX graph with who computes and who reads each value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OWN_DOMAIN = "covp"
"""Domain of nodes that only this reader makes."""
_BYTES = ("int8", "uint8")
_NIBBLES = {"int4": "int8", "uint4": "uint8"}
"""Types of 4-bit constants, and the type that each is read as."""
FINEST = 2.0**-10
"""Steps of the result by which a bias may move when it is rounded to the unit of the products."""


@dataclass(frozen=True)
class QuantizedEdge:
    """A quantized value.

    Attributes:
        name: of the integers.
        scale, zero_point: names of constants.
        type: "int8" or "uint8".
        per_tensor: whether there is one scale.
        axis: that several scales run along.
    """

    name: str
    scale: str
    zero_point: str
    type: str
    per_tensor: bool
    axis: int

    @property
    def parameters(self) -> list[str]:
        """Scale and zero point, as QLinear operators take them."""
        return [self.scale, self.zero_point]

    @property
    def names(self) -> list[str]:
        """The value and its parameters."""
        return [self.name, *self.parameters]


class ProtoGraph:
    """Nodes that can be replaced; `write` puts them back into the model.

    Args:
        model: changed by `write` only, except for constants that are added to it.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        for node in model.graph.node:
            node.domain = "" if node.domain == "ai.onnx" else node.domain
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        self.opset = opsets.get("", opsets.get("ai.onnx", 1))
        self.nodes = list(model.graph.node)
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._outputs = {value.name for value in model.graph.output}
        self._input_types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
        self._producers: dict[str, onnx.NodeProto] = {}
        self._readers: Counter[str] = Counter()
        for node in self.nodes:
            self._producers.update(dict.fromkeys(node.output, node))
            self._readers.update(_reads(node))
            values = [a.t for a in node.attribute if a.name == "value"]
            if node.op_type == "Constant" and values:
                self._constants[node.output[0]] = values[0]

    def write(self) -> None:
        """Put the nodes into the model."""
        written = onnx.GraphProto()
        written.node.extend(self.nodes)
        del self.graph.node[:]
        self.graph.node.extend(written.node)

    def constant(self, name: str) -> NDArray[Any] | None:
        """Return a constant's value; None if it is not constant or cannot be read."""
        tensor = self._constants.get(name)
        try:
            return None if tensor is None else np.asarray(numpy_helper.to_array(tensor))
        except Exception:  # a damaged one is reported where it is used
            return None

    def constant_proto(self, name: str) -> onnx.TensorProto:
        """Return a constant under the name by which nodes read it."""
        tensor = onnx.TensorProto()
        tensor.CopyFrom(self._constants[name])
        tensor.name = name
        return tensor

    def all_constant(self, names: Iterable[str]) -> bool:
        """Return whether all names are constants or left out."""
        return all(not name or name in self._constants for name in names)

    def only_producer(self, name: str) -> onnx.NodeProto | None:
        """Return the node that computes a value for one reader alone."""
        shared = self._readers[name] != 1 or name in self._outputs
        return None if shared else self._producers.get(name)

    def quantized_output(self, node: onnx.NodeProto) -> QuantizedEdge | None:
        """Return a QuantizeLinear's output if it is bytes with one constant scale."""
        edge = self._edge(node, node.output[0])
        return edge if edge is not None and edge.per_tensor else None

    def quantized_source(self, name: str) -> QuantizedEdge | None:
        """Return the bytes that a value is dequantized from, of constant parameters; else None."""
        node = self._producers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or node.domain not in ("", "ai.onnx"):
            return None
        return self._edge(node, node.input[0])

    def _edge(self, node: onnx.NodeProto, name: str) -> QuantizedEdge | None:
        scale = self.constant(node.input[1])
        if scale is None or self.number(node, "block_size", 0) or scale.dtype != np.float32:
            return None
        given = len(node.input) > 2 and bool(node.input[2])
        zero = self.constant(node.input[2]) if given else self._zero(node, name, scale.shape)
        if zero is not None and name in self._constants and zero.dtype.name in _NIBBLES:
            zero = zero.astype(_NIBBLES[zero.dtype.name])
        if zero is None or zero.dtype.name not in _BYTES or zero.size != scale.size:
            return None
        point = node.input[2] if given else self.add_constant(f"{name}_zero_point", zero)
        axis = int(self.number(node, "axis", 1))
        return QuantizedEdge(name, node.input[1], point, zero.dtype.name, scale.size == 1, axis)

    def _zero(self, node: onnx.NodeProto, name: str, shape: tuple[int, ...]) -> NDArray[Any] | None:
        """Return a zero point that was left out, of the type that the bytes have."""
        if node.op_type == "QuantizeLinear":
            kind = int(self.number(node, "output_dtype", 0)) or onnx.TensorProto.UINT8
        else:
            source = self._constants.get(name)
            quantize = self._producers.get(name)
            if source is not None:
                kind = source.data_type
            elif quantize is not None and quantize.op_type == "QuantizeLinear":
                if len(quantize.input) < 3 or not quantize.input[2]:
                    return self._zero(quantize, name, shape)
                point = self.constant(quantize.input[2])
                return None if point is None else np.zeros(shape, point.dtype)
            elif name in self._input_types:
                kind = self._input_types[name]
            else:
                return None
        try:
            return np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind))
        except Exception:
            return None

    def scales(self, edge: QuantizedEdge) -> NDArray[np.float64]:
        """Return the scales of a quantized value: one, or one for each index along its axis."""
        scale = self.constant(edge.scale)
        assert scale is not None
        return scale.astype(np.float64).reshape(-1)

    def stored_shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a constant, or of a value quantized from one; else None."""
        node = self._producers.get(name)
        quantized = node is not None and node.op_type == "QuantizeLinear"
        value = self.constant(node.input[0] if node is not None and quantized else name)
        return None if value is None else value.shape

    def symmetric_along(self, edge: QuantizedEdge, axis: int) -> bool:
        """Return whether scales run along ``axis`` and values minus zero points fit int8."""
        shape, value = self.stored_shape(edge.name), self.constant(edge.name)
        if shape is None or edge.axis % len(shape) != axis:
            return False
        zero = self.constant(edge.zero_point)
        if value is None or zero is None:
            return zero is not None and not zero.any()
        along = [-1 if i == axis else 1 for i in range(len(shape))]
        centred = value.astype(np.int16) - zero.astype(np.int16).reshape(along)
        return bool(centred.min(initial=0) >= -128 and centred.max(initial=0) <= 127)

    def bias_in(
        self, name: str, outputs: int, unit: NDArray[np.float64], step: float
    ) -> str | None:
        """Return an int32 constant: a dequantized bias in units of the products it is added to.

        Its integers as they are where its scale is the unit. Those of another scale are rounded to
        units where that moves no result by more than `FINEST` steps.

        Args:
            name: of the bias.
            outputs: for which it has an element each, or one for all.
            unit: scale of the input times scale of the weights, of each output or of all.
            step: of the result.

        Returns:
            The constant's name; None where there is none.
        """
        node = self._producers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or node.domain:
            return None
        value, scale = self.constant(node.input[0]), self.constant(node.input[1])
        given = len(node.input) > 2 and bool(node.input[2])
        zero = self.constant(node.input[2]) if given else np.zeros((), np.int32)
        if value is None or scale is None or zero is None or value.dtype.kind != "i":
            return None
        if value.shape not in ((), (1,), (1, 1), (outputs,), (1, outputs)):
            return None
        if not {scale.size, zero.size} <= {1, value.size} or not (scale > 0).all():
            return None
        ratio = scale.astype(np.float64).reshape(-1) / unit
        if value.dtype == np.int32 and not zero.any() and np.all(abs(ratio - 1) <= 2.0**-22):
            return str(node.input[0])
        levels = (value.reshape(-1).astype(np.int64) - zero.reshape(-1)) * ratio
        moved = np.abs(levels - np.rint(levels)) * unit / step
        if not (np.all(np.abs(levels) < 2.0**31 - 1) and np.all(moved <= FINEST)):
            return None
        return self.add_constant(f"{name}_in_units", np.rint(levels).astype(np.int32))

    def same_parameters(self, one: QuantizedEdge, other: QuantizedEdge) -> bool:
        """Return whether equal bytes are equal values."""
        pairs = zip(one.parameters, other.parameters, strict=True)
        return one.type == other.type and all(
            a == b or np.array_equal(self.constant(a), self.constant(b))  # type: ignore[arg-type]
            for a, b in pairs
        )

    def constant_clip(self, node: onnx.NodeProto) -> bool:
        """Return whether the limits of a Clip are constant."""
        return self.all_constant(node.input[1:])

    def clip_limits(self, node: onnx.NodeProto) -> list[onnx.AttributeProto]:
        """Return the limits of a Relu or Clip as attributes ``clip_low`` and ``clip_high``."""
        limits: dict[str, float] = {"clip_low": 0.0} if node.op_type == "Relu" else {}
        for position, (old, new) in enumerate((("min", "clip_low"), ("max", "clip_high")), 1):
            value = self.constant(node.input[position]) if len(node.input) > position else None
            if value is not None and value.size == 1:
                limits[new] = float(value.reshape(-1)[0])
            elif self.number(node, old, None) is not None:
                limits[new] = float(self.number(node, old, None))
        return [helper.make_attribute(name, value) for name, value in limits.items()]

    def number(self, node: onnx.NodeProto, name: str, default: Any) -> Any:
        """Return an attribute that is a number."""
        for attribute in node.attribute:
            if attribute.name == name:
                return helper.get_attribute_value(attribute)
        return default

    def text(self, node: onnx.NodeProto, name: str, default: str) -> str:
        """Return an attribute that is a string."""
        value = self.number(node, name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def unique(self, name: str) -> str:
        """Return a name that no value has."""
        taken = self._producers.keys() | self._constants.keys()
        return next(n for i in range(10**6) if (n := f"{name}_{i}" if i else name) not in taken)

    def add_constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant; return its name."""
        found = self.unique(name)
        tensor = numpy_helper.from_array(value, found)
        self.graph.initializer.append(tensor)
        self._constants[found] = tensor
        return found

    def insert_before(self, node: onnx.NodeProto, made: onnx.NodeProto) -> None:
        """Insert a new node before another one, which the pattern no longer reads."""
        self.nodes.insert(self._index(node), made)
        self._enter(made)

    def replace(self, node: onnx.NodeProto, made: onnx.NodeProto) -> None:
        """Put a node in the place of another with the same outputs."""
        self.nodes[self._index(node)] = made
        self._readers.subtract(_reads(node))
        self._enter(made)

    def _enter(self, made: onnx.NodeProto) -> None:
        self._producers.update(dict.fromkeys(made.output, made))
        self._readers.update(_reads(made))

    def _index(self, node: onnx.NodeProto) -> int:
        return next(i for i, other in enumerate(self.nodes) if other is node)

    def drop_unused_nodes(self) -> None:
        """Drop nodes that were read before patterns were replaced, and now are not."""
        before = Counter(name for node in self.graph.node for name in _reads(node))
        kept: list[onnx.NodeProto] = []
        needed = set(self._outputs)
        for node in reversed(self.nodes):
            was_read = any(before[name] for name in node.output)
            if was_read and not any(name in needed for name in node.output):
                continue
            needed.update(_reads(node))
            kept.append(node)
        self.nodes = kept[::-1]


def _reads(node: onnx.NodeProto) -> list[str]:
    """Return the names of the values that a node reads, in its subgraphs too."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
        names += [name for graph in graphs for inner in graph.node for name in _reads(inner)]
    return names
