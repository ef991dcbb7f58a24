"""The ONNX reader: a model file into a `Graph`.

Local functions are inlined; shapes are inferred and constants folded as each node is converted, so
that a converter knows the shapes of its inputs. Operators without a converter of their own are
expanded into the function body that the ONNX standard gives for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.inliner
import onnx.numpy_helper
from numpy.typing import NDArray

from covp.arguments import read_file
from covp.errors import ModelError, near_misses
from covp.frontend.onnx.converters import CONVERTERS
from covp.frontend.onnx.function_bodies import body_of
from covp.frontend.onnx.importer import Importer
from covp.frontend.onnx.node import Node
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.user_operators import find_user_operator

OLDEST = 7
"""The oldest opset whose operators are understood; newer ones are those of the installed onnx."""
_LONGEST = 500  # characters of an error
_DTYPES = {
    name: np.dtype(name)
    for name in (
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
}
_OWN = ("", "ai.onnx")
Scope = dict[str, Tensor]
Shapes = Mapping[str, Sequence[int]]


def load_onnx(path: str | Path, shapes: Shapes | None = None) -> Graph:
    """Read a .onnx file, with its external data from the same folder.

    Args:
        path: of the file.
        shapes: of inputs by name, for those that the file leaves open.

    Raises:
        ModelError: the file is missing, damaged, or uses what is not supported. The text names the
            file, the node or the tensor, and what would fix it.
    """
    path = Path(path)
    try:
        model = onnx.ModelProto.FromString(_read(path))
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{path}: its external data cannot be read: {error}") from None
    except Exception as error:  # protobuf and onnx raise what they like on damaged files
        raise ModelError(
            f"{path}: damaged or no ONNX model ({type(error).__name__}); export the model again"
        ) from None
    return read_onnx(model, _identifier(path.stem), str(path), shapes)


def read_onnx(
    model: onnx.ModelProto, name: str = "model", where: str = "model", shapes: Shapes | None = None
) -> Graph:
    """As `load_onnx` for a model in memory; errors begin with ``where``."""
    try:
        return _Reader(model, shapes or {}).graph(name)
    except ModelError as error:
        text = " ".join(str(error).split())
        raise ModelError(f"{where}: {text[:_LONGEST]}{'...' * (len(text) > _LONGEST)}") from None


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise ModelError(f"{path}: is a directory; name a .onnx file in it")
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if not data:
        raise ModelError(f"{path}: the file is empty; export the model again")
    return data


def _identifier(stem: str) -> str:
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower() or "model"
    return f"model_{name}" if name[0].isdigit() else name


class _Reader:
    """One model."""

    def __init__(self, model: onnx.ModelProto, shapes: Shapes) -> None:
        self.model = _inlined(model)
        self.shapes = shapes
        self.opsets = {entry.domain: entry.version for entry in self.model.opset_import}
        self.opsets.setdefault("", self.opsets.get("ai.onnx", 1))
        self.importer = Importer()
        self.stated = _stated_shapes(self.model.graph)
        self._check_opset()

    def graph(self, name: str) -> Graph:
        proto = self.model.graph
        scope: Scope = {}
        for tensor in proto.initializer:
            scope[tensor.name] = self.importer.constant(_array(tensor), tensor.name)
        if proto.sparse_initializer:
            raise ModelError("has sparse initializers, which are not supported; make them dense")
        inputs = [self._input(value) for value in proto.input if value.name not in scope]
        scope |= {tensor.name: tensor for tensor in inputs}
        self.convert(proto.node, scope)
        if not inputs and not proto.node:
            raise ModelError("has no operator; nothing is left to run")
        outputs = [(value.name, self._known(scope, value.name)) for value in proto.output]
        if not outputs:
            raise ModelError("has no output")
        return self.importer.graph(name, inputs, outputs)

    def convert(self, nodes: Iterable[onnx.NodeProto], scope: Scope, label: str = "") -> None:
        """Convert nodes in order; their outputs become known in ``scope``.

        Args:
            nodes: of a graph or of a function's body.
            scope: tensors by name.
            label: of the node whose body this is; empty for the model's own graph.
        """
        for index, proto in enumerate(nodes):
            if not label:
                self.importer.index = index
            self.importer.label = label or proto.name or f"{proto.op_type}_{index}"
            try:
                self._node(proto, scope, self.importer.label)
            except ModelError as error:
                if label:
                    raise
                raise ModelError(f"node {self.importer.label} ({proto.op_type}): {error}") from None

    def _node(self, proto: onnx.NodeProto, scope: Scope, label: str) -> None:
        domain = "" if proto.domain in _OWN else proto.domain
        node = Node(
            proto.op_type,
            label,
            self.importer.index,
            self.opsets.get(domain, 1),
            [self._known(scope, name) if name else None for name in proto.input],
            list(proto.output),
            {a.name: _attribute(a) for a in proto.attribute},
            domain,
            [self.stated.get(name) for name in proto.output],
        )
        convert = CONVERTERS.get((domain, node.kind))
        if convert is not None:
            found = convert(node, self.importer)
            self._bind(node, [found] if isinstance(found, Tensor) else list(found), scope)
            return
        if self._user_operator(node, scope):
            return
        body = body_of(proto, node, self.opsets)
        if body is None:
            known = [kind for place, kind in CONVERTERS if place == domain]
            raise ModelError(
                f"operator {f'{domain}::' if domain else ''}{node.kind} of opset {node.opset} is "
                f"not supported; {near_misses(node.kind, known)} "
                "(covp.frontend.onnx.converters.register teaches the reader others)"
            )
        inner = {name: t for name, t in zip(body.input, node.inputs, strict=False) if t is not None}
        self.convert(body.node, inner, label)
        self._bind(node, [inner.get(name) for name in body.output], scope)

    def _bind(self, node: Node, found: Sequence[Tensor | None], scope: Scope) -> None:
        for name, tensor in zip(node.outputs, found, strict=False):
            if not name:
                continue
            if tensor is None:
                raise ModelError(f"output {name} is not supported")
            if tensor.data is None and any(tensor is out for out in self._latest()):
                self.importer.rename(tensor, name)
            scope[name] = tensor

    def _latest(self) -> list[Tensor]:
        return self.importer.ops[-1].outputs if self.importer.ops else []

    def _user_operator(self, node: Node, scope: Scope) -> bool:
        operator = find_user_operator(node.kind)
        if operator is None:
            return False
        attributes = dict(node.attributes)
        first = node.input(0)
        draft = Op(node.kind, node.name, list(node.inputs), [first], None, node.index)
        made = operator.convert(draft, attributes) if operator.convert else None
        result = self.importer.add(
            operator.kind, *node.inputs, attributes=made, quantization=first.quantization
        )
        self._bind(node, [result], scope)
        return True

    def _known(self, scope: Scope, name: str) -> Tensor:
        if name not in scope:
            raise ModelError(f"reads {name} before it is computed; the graph is not in order")
        return scope[name]

    def _input(self, value: onnx.ValueInfoProto) -> Tensor:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise ModelError(f"input {value.name} is no tensor but {kind}; it is not supported")
        tensor = value.type.tensor_type
        shape = self._shape(value.name, tensor)
        return Tensor(self.importer.unique(value.name), shape, _dtype(tensor.elem_type, value.name))

    def _shape(self, name: str, tensor: Any) -> tuple[int, ...]:
        stated = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        given = self.shapes.get(name)
        if given is None:
            if None in stated or not tensor.HasField("shape"):
                shown = ",".join(d.dim_param or str(d.dim_value or "?") for d in tensor.shape.dim)
                raise ModelError(
                    f"input {name} has a dynamic shape ({shown}); fix it with --shape {name}="
                    + ",".join(str(n or 1) for n in stated or [1])
                )
            return tuple(int(n or 0) for n in stated)
        fits = len(given) == len(stated) and all(
            wanted is None or wanted == n for wanted, n in zip(stated, given, strict=True)
        )
        if tensor.HasField("shape") and not fits:
            raise ModelError(f"input {name} of shape {stated} cannot be given the shape {given}")
        return tuple(int(n) for n in given)

    def _check_opset(self) -> None:
        version, newest = self.opsets[""], onnx.defs.onnx_opset_version()
        if not OLDEST <= version <= newest:
            hint = (
                "install a newer onnx package"
                if version > newest
                else "convert it with onnx.version_converter"
            )
            raise ModelError(f"opset {version} is not among {OLDEST} to {newest}; {hint}")
        unknown = sorted(self.shapes.keys() - {value.name for value in self.model.graph.input})
        if unknown:
            names = [value.name for value in self.model.graph.input]
            raise ModelError(f"there is no input {unknown[0]}; {near_misses(unknown[0], names)}")


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    if not model.functions:
        return model
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:
        raise ModelError(f"its local functions cannot be inlined: {error}") from None


def _stated_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Static shapes that the model states of its own values, by name."""
    shapes = {}
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        extents = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        if tensor.HasField("shape") and None not in extents:
            shapes[value.name] = tuple(int(extent or 0) for extent in extents)
    return shapes


def _array(tensor: onnx.TensorProto) -> NDArray[Any]:
    _dtype(tensor.data_type, tensor.name)
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as error:
        raise ModelError(f"constant {tensor.name} is damaged: {error}") from None


def _dtype(number: int, name: str) -> np.dtype[Any]:
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
    except Exception:
        raise ModelError(f"tensor {name} is of unknown type {number}") from None
    if dtype.name not in _DTYPES:
        raise ModelError(
            f"tensor {name} is {dtype.name}, which is not supported; known: {', '.join(_DTYPES)}"
        )
    return _DTYPES[dtype.name]


def _attribute(proto: onnx.AttributeProto) -> Any:
    if proto.type == onnx.AttributeProto.TENSOR:
        return _array(proto.t)
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if proto.type == onnx.AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in value]
    return list(value) if isinstance(value, Sequence) else value
