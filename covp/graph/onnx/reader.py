"""The ONNX reader: a model file into a `Graph`.

Local functions are inlined; shapes are inferred and constants folded as each node is converted, so
that a converter knows the shapes of its inputs. Operators without a converter of their own are
expanded into the function body that the ONNX standard gives for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx.external_data_helper

from covp.base.request import Shapes
from covp.errors import ModelError, Subject, near_misses, printable
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.model_file import identifier, model_bytes
from covp.graph.onnx.converters import CONVERTERS, unknown_operator
from covp.graph.onnx.fuse_qdq import with_integers
from covp.graph.onnx.importer import MOST_BYTES, Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.prepare import MOST_NODES, body_of, convert_if, convert_loop, prepare
from covp.graph.onnx.values import (
    array_of,
    attribute_of,
    bits_of,
    check_size,
    dtype_of,
    stated_extents,
    stated_shapes,
)
from covp.graph.rewrites import demand_same_results
from covp.graph.rounding_rules import FUSED
from covp.graph.user_operators import find_user_operator


def read_proto(path: Path) -> onnx.ModelProto:
    """Return the model in a file; its external data lies in the same folder.

    Raises:
        ModelError: the file, or one with its data, is missing or damaged; one line.
    """
    data = model_bytes(path, ".onnx", "export the model again")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf raises what it likes on damaged files
        raise ModelError(
            f"damaged or no ONNX model ({type(error).__name__}); export the model again", where=path
        ) from None
    for tensor in model.graph.initializer:
        _find_external_data(path, tensor)
    try:
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
    except Exception as error:
        text = " ".join(str(error).split())
        raise ModelError(f"its external data cannot be read: {text:.200}", where=path) from None
    return model


def _find_external_data(path: Path, tensor: onnx.TensorProto) -> None:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    place = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if not place or not (path.parent / place).is_file():
        raise ModelError(
            f"the data of {tensor.name} is in the file {place or '?'}, which is missing; "
            "put it into the same folder",
            where=path,
        )


_LONGEST = 500  # characters of an error
_OWN = ("", "ai.onnx")
_BATCH = re.compile(r"(?i).*batch.*|n|b|bs|unk__\d+|s\d+|dim_0|")
"""Names that exporters give a batch of any size: PyTorch (batch, s77), tf2onnx (unk__12) and
scikit-learn (no name). Other names, such as seq_len, are not of a batch."""
# exceptions that wrong numbers in a model cause in converters and shape rules
_WRONG = (ArithmeticError, AssertionError, LookupError, MemoryError, TypeError, ValueError)


def load_onnx(
    path: str | Path,
    shapes: Shapes | None = None,
    fused: bool = True,
    defined: bool = False,
) -> Graph:
    """Read a .onnx file, with its external data from the same folder.

    Args:
        path: of the file.
        shapes: of inputs by name, for those that the file leaves open.
        fused: make integer operators of QDQ patterns; else each node is an operator of its own.
        defined: see `Importer`; for a graph that is executed, not compiled.

    Raises:
        ModelError: the file is missing, damaged, or uses what is not supported. The text names the
            file, the node or the tensor, and what would fix it.
    """
    path = Path(path)
    return read_onnx(read_proto(path), identifier(path.stem), str(path), shapes, fused, defined)


def read_onnx(
    model: onnx.ModelProto,
    name: str = "model",
    where: str = "model",
    shapes: Shapes | None = None,
    fused: bool = True,
    defined: bool = False,
) -> Graph:
    """Read an ONNX model in memory, like `load_onnx`; errors begin with ``where``."""
    try:
        stated = prepare(model)
        integers = with_integers(stated) if fused else stated
        graph = _Reader(integers, shapes or {}, defined).graph(name)
        if integers is not stated:
            _validate(stated, graph, shapes or {})
        return graph
    except ModelError as error:
        text = printable(" ".join(str(error).split()))
        cut = f"{text[:_LONGEST]}{'...' * (len(text) > _LONGEST)}"
        raise ModelError(f"{where}: {cut}", **error.subject) from error.__cause__
    except RecursionError:
        raise ModelError(f"{where}: its graphs are nested too deeply") from None


def _validate(stated: onnx.ModelProto, graph: Graph, shapes: Shapes) -> None:
    """Raise ModelError if integer operators differ from the nodes that they replace."""
    try:
        source = _Reader(stated, shapes).graph(graph.name)
    except ModelError:  # of a node that is supported as a part of a pattern only
        return
    names = {name for node in stated.graph.node for name in node.output}
    names.update(tensor.name for tensor in graph.inputs)
    demand_same_results(source, graph, "the fusion of a QDQ pattern", FUSED, names)


def _is_open_batch(shape: onnx.TensorShapeProto, stated: Sequence[int | None]) -> bool:
    """Return whether only the first of several axes is open, and is a batch by its name."""
    if len(stated) < 2 or stated[0] is not None or None in stated[1:]:
        return False
    return _BATCH.fullmatch(shape.dim[0].dim_param) is not None


@dataclass(frozen=True)
class _Scope:
    """The scope of nodes: the model's graph, a branch, a loop's body, a function's body.

    Attributes:
        tensors: by name.
        stated: shapes that the model states, by name.
        opsets: by domain.
        label: of the node whose body this is; empty for the model's own graph.
        named: whether the nodes have names of their own in reports, after the label.
    """

    tensors: dict[str, Tensor]
    stated: Mapping[str, tuple[int, ...]]
    opsets: Mapping[str, int]
    label: str = ""
    named: bool = True

    def of(self, proto: onnx.NodeProto, position: int) -> str:
        """Return the name of a node in reports."""
        if not self.named:
            return self.label
        own = proto.name or f"{proto.op_type}_{position}"
        return f"{self.label}/{own}" if self.label else own


class _Reader:
    """The reader of one model."""

    def __init__(self, model: onnx.ModelProto, shapes: Shapes, defined: bool = False) -> None:
        self.model = model
        self.shapes = shapes
        self.importer = Importer(defined)
        self.importer.read = read_onnx
        self.converted = 0
        self.notes: list[str] = []
        self.named: set[int] = set()
        self.results = {value.name for value in model.graph.output}
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        opsets.setdefault("", opsets.get("ai.onnx", 1))
        self.scope = _Scope({}, stated_shapes(model.graph), opsets)
        self._check_shapes()

    def graph(self, name: str) -> Graph:
        proto, scope = self.model.graph, self.scope
        self._add_constants(proto, scope)
        inputs = []
        for value in proto.input:
            if value.name not in scope.tensors:
                inputs.append(self._input(value))
                scope.tensors[value.name] = inputs[-1]
        self._convert(proto.node, scope)
        if not proto.node:
            raise ModelError("has no operator; nothing is left to run")
        outputs = [(value.name, self._known(scope, value.name)) for value in proto.output]
        if not outputs:
            raise ModelError("has no output")
        graph = self.importer.graph(name, inputs, outputs)
        graph.notes = tuple(self.notes)
        return graph

    def _add_constants(self, proto: onnx.GraphProto, scope: _Scope) -> None:
        if proto.sparse_initializer:
            raise ModelError("has sparse initializers, which are not supported; make them dense")
        for tensor in proto.initializer:
            constant = self.importer.constant(array_of(tensor), tensor.name)
            constant.bits = bits_of(tensor)
            scope.tensors[tensor.name] = constant

    def _convert(self, nodes: Iterable[onnx.NodeProto], scope: _Scope) -> None:
        """Convert nodes in order; their outputs become known in the scope."""
        for position, proto in enumerate(nodes):
            self.converted += 1
            if self.converted > MOST_NODES:
                raise ModelError(f"has more than {MOST_NODES} nodes once its loops are unrolled")
            if not scope.label:
                self.importer.index = position
            self.importer.label = scope.of(proto, position)
            try:
                self._node(proto, scope)
            except (ModelError, *_WRONG) as error:
                if not scope.named:
                    raise
                text, name = str(error), proto.name or f"{proto.op_type}_{position}"
                subject: Subject = {"operator": name}
                if isinstance(error, ModelError):
                    subject.update(error.subject)
                else:
                    text = f"its inputs or attributes are wrong: {type(error).__name__}: {error}"
                raise ModelError(f"node {name} ({proto.op_type}): {text}", **subject) from error

    def _node(self, proto: onnx.NodeProto, scope: _Scope) -> None:
        domain = "" if proto.domain in _OWN else proto.domain
        node = OnnxNode(
            proto.op_type,
            self.importer.label,
            self.importer.index,
            scope.opsets.get(domain, 1),
            [self._known(scope, name) if name else None for name in proto.input],
            list(proto.output),
            {a.name: attribute_of(a) for a in proto.attribute},
            domain,
            [scope.stated.get(name) for name in proto.output],
        )
        self._bind(node, self._convert_node(proto, node, scope), scope)

    def _convert_node(
        self, proto: onnx.NodeProto, node: OnnxNode, scope: _Scope
    ) -> Sequence[Tensor | None]:
        """Return the outputs of a node."""
        flow = {"If": convert_if, "Loop": convert_loop}.get(node.kind if not node.domain else "")
        if flow is not None:
            return flow(node, self.importer, partial(self._subgraph, scope, self.importer.label))
        convert = CONVERTERS.get((node.domain, node.kind))
        if convert is not None:
            found = convert(node, self.importer)
            return [found] if isinstance(found, Tensor) else found
        own = self._user_operator(node)
        if own is not None:
            return [own]
        body = body_of(proto, node, scope.opsets)
        if body is None:
            raise unknown_operator(node)
        return self._body(body, node, scope)

    def _body(
        self, body: onnx.FunctionProto, node: OnnxNode, scope: _Scope
    ) -> Sequence[Tensor | None]:
        """Convert a function's body for the node's inputs; return its outputs."""
        given = zip(body.input, node.inputs, strict=False)
        stated = zip(body.output, node.stated, strict=False)
        inner = _Scope(
            {name: tensor for name, tensor in given if tensor is not None},
            {name: shape for name, shape in stated if shape is not None},
            {**scope.opsets, **{e.domain: e.version for e in body.opset_import}},
            self.importer.label,
            named=False,
        )
        self._convert(body.node, inner)
        return [inner.tensors.get(name) for name in body.output]

    def _subgraph(
        self,
        scope: _Scope,
        label: str,
        proto: onnx.GraphProto,
        inputs: Sequence[Tensor | None],
    ) -> list[Tensor]:
        """Return the outputs of a branch or a loop's body, which sees what is around it."""
        stated = {**scope.stated, **stated_shapes(proto)}
        inner = replace(scope, tensors=dict(scope.tensors), stated=stated, label=label)
        self._add_constants(proto, inner)
        for value, tensor in zip(proto.input, inputs, strict=True):
            if tensor is not None:
                inner.tensors[value.name] = tensor
        self._convert(proto.node, inner)
        return [self._known(inner, value.name) for value in proto.output]

    def _bind(self, node: OnnxNode, found: Sequence[Tensor | None], scope: _Scope) -> None:
        if len(found) < sum(map(bool, node.outputs)):
            raise ModelError(f"has {len(node.outputs)} outputs; {len(found)} are known")
        for name, tensor in zip(node.outputs, found, strict=False):
            if not name:
                continue
            if tensor is None:
                raise ModelError(f"output {name} is not supported")
            if name in scope.tensors and not scope.label:
                raise ModelError(f"writes {name}, which is there already")
            # a node that changes nothing gives the tensor of another one, which keeps its name
            keeps = id(tensor) in self.named and name not in self.results
            if tensor.data is None and not keeps and any(tensor is t for t in self._latest()):
                self.importer.rename(tensor, name)
                self.named.add(id(tensor))
            scope.tensors[name] = tensor

    def _latest(self) -> list[Tensor]:
        return self.importer.ops[-1].outputs if self.importer.ops else []

    def _user_operator(self, node: OnnxNode) -> Tensor | None:
        operator = find_user_operator(node.kind)
        if operator is None:
            return None
        attributes = dict(node.attributes)
        first = node.input(0)
        draft = Op(node.kind, node.name, list(node.inputs), [first], None, node.index)
        made = operator.convert(draft, attributes) if operator.convert else None
        return self.importer.add(
            operator.kind, *node.inputs, attributes=made, quantization=first.quantization
        )

    def _known(self, scope: _Scope, name: str) -> Tensor:
        if name in scope.tensors:
            return scope.tensors[name]
        if any(name in node.output for node in self.model.graph.node):
            raise ModelError(
                f"{name} is needed before it is computed; the nodes are in a circle or not in order"
            )
        raise ModelError(f"{name} is needed and nothing computes it")

    def _input(self, value: onnx.ValueInfoProto) -> Tensor:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            what = str(kind).removesuffix("_type")
            raise ModelError(f"input {value.name} is a {what}; only tensors are supported")
        tensor = value.type.tensor_type
        dtype = dtype_of(tensor.elem_type, f"input {value.name}")
        shape = self._shape(value.name, tensor)
        check_size(shape, dtype, MOST_BYTES, f"input {value.name}")
        return Tensor(self.importer.unique(value.name), shape, dtype)

    def _shape(self, name: str, tensor: Any) -> tuple[int, ...]:
        stated = stated_extents(tensor.shape)
        given = self.shapes.get(name)
        if given is None and _is_open_batch(tensor.shape, stated):
            shape = (1, *(int(n or 0) for n in stated[1:]))
            text = ",".join(map(str, shape))
            self.notes.append(
                f"input {name} has an open batch, taken as 1; --shape {name}={text} states another"
            )
            return shape
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
            shown = ",".join("?" if n is None else str(n) for n in stated)
            raise ModelError(f"input {name} of shape ({shown}) cannot be given the shape {given}")
        return tuple(int(n) for n in given)

    def _check_shapes(self) -> None:
        constants = {tensor.name for tensor in self.model.graph.initializer}
        names = [v.name for v in self.model.graph.input if v.name not in constants]
        for unknown in sorted(self.shapes.keys() - set(names)):
            raise ModelError(f"there is no input {unknown}", hint=near_misses(unknown, names))
