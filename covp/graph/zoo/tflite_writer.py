"""Writing a graph as a .tflite file: the reverse of `covp.graph.tflite`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import flatbuffers
import numpy as np
import tflite
from numpy.typing import NDArray

from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Graph, Op, State, Tensor
from covp.graph.ops import OPS
from covp.graph.tflite.variables import CHANGED_INPUTS
from covp.graph.user_operators import find_user_operator
from covp.graph.zoo.tflite_options_writer import CUSTOM_NAMES, builtin_options, custom_options


def tflite_form(graph: Graph) -> Graph:
    """Return the graph with operators in the form of a file; the argument is unchanged."""
    return replace(graph, ops=[_FORMS.get(op.kind, _same)(op) for op in graph.ops])


def _same(op: Op) -> Op:
    return op


def _transpose_conv(op: Op) -> Op:
    """Return the file's form: inputs are the output's shape, weights, image and bias."""
    shape = np.array(op.output.shape, np.int32)
    stated = Tensor(f"{op.name}_shape", shape.shape, shape.dtype, None, shape)
    return replace(op, inputs=[stated, op.input(1), op.input(0), *op.inputs[2:]])


def _group(op: Op) -> Op:
    """Return a CONV_2D with fewer input channels in its filters than in its image."""
    a = op.attributes
    (top, bottom), (left, right) = a.padding
    attributes = Conv2D(a.stride, Padding(top, bottom, left, right), a.dilation, a.activation)
    return replace(op, kind="CONV_2D", attributes=attributes)


_FORMS = {"CONV_ND": _group, "TRANSPOSE_CONV": _transpose_conv}


RESOURCE = np.dtype(object)
"""Placeholder for TFLite's type of handles."""


@dataclass(frozen=True)
class VarHandle:
    """VAR_HANDLE: the name of the variable."""

    name: str


@dataclass(frozen=True)
class FileGraphs:
    """The content of a file of a graph with states.

    Attributes:
        subgraphs: the model, and what CALL_ONCE runs, if there is that.
        variables: the tensors that operators change, by identity.
    """

    subgraphs: tuple[Graph, ...]
    variables: frozenset[int]


def in_file(graph: Graph) -> FileGraphs:
    """Return the subgraphs of a graph's file.

    A state that an LSTM or SVDF changes is its variable tensor; others are resources: read before
    the operators, assigned after them.
    """
    ops = [_without_states(op) for op in graph.ops]
    changed = {
        id(op.inputs[position]) for op in graph.ops for position in CHANGED_INPUTS.get(op.kind, ())
    }
    resources = [state for state in graph.states if id(state.before) not in changed]
    variables = frozenset(id(s.before) for s in graph.states if id(s.before) in changed)
    if not resources:
        return FileGraphs((replace(graph, ops=ops, states=[]),), variables)
    handles = [_handle(state) for state in resources]
    pairs = list(zip(resources, handles, strict=True))
    ops = [
        *handles,
        Op("CALL_ONCE", "initialize", [], []),
        *(Op("READ_VARIABLE", "read", [h.output], [s.before]) for s, h in pairs),
        *ops,
        *(Op("ASSIGN_VARIABLE", "assign", [h.output, s.after], []) for s, h in pairs),
    ]
    main = replace(graph, ops=ops, states=[])
    return FileGraphs((main, _initialization(resources)), variables)


def _without_states(op: Op) -> Op:
    """Return the operator without the outputs that are its variables afterwards."""
    kept = len(op.outputs) - len(CHANGED_INPUTS.get(op.kind, ()))
    return replace(op, outputs=op.outputs[:kept])


def _handle(state: State) -> Op:
    handle = Tensor(f"{state.name}_handle", (), RESOURCE)
    return Op("VAR_HANDLE", handle.name, [], [handle], VarHandle(state.name))


def _initialization(states: list[State]) -> Graph:
    ops = []
    for state in states:
        handle = _handle(state)
        value = _constant(state, np.ascontiguousarray(state.initial))
        ops += [handle, Op("ASSIGN_VARIABLE", "assign", [handle.output, value], [])]
    return Graph("initialization", [], [], ops)


def _constant(state: State, data: NDArray[Any]) -> Tensor:
    before = state.before
    return Tensor(f"{state.name}_initial", before.shape, before.dtype, before.quantization, data)


_TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "int8": tflite.TensorType.INT8,
    "uint8": tflite.TensorType.UINT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "bool": tflite.TensorType.BOOL,
    "float16": tflite.TensorType.FLOAT16,
    "object": tflite.TensorType.RESOURCE,
}
_BUFFER_ALIGNMENT = 16
_SCHEMA_VERSION = 3
_VERSIONS = {"BROADCAST_TO": 2}  # others have had every type that covp writes from the start


def write_tflite(graph: Graph) -> bytes:
    """Return the graph as a flatbuffer that TFLite and TFLM read.

    Raises:
        ValueError: a padding is neither what SAME nor what VALID gives, or an operator or dtype
            has no place in the format.
    """
    return _Writer(in_file(tflite_form(graph))).data()


class _Writer:
    def __init__(self, file: FileGraphs) -> None:
        self.file = file
        self.builder: Any = flatbuffers.Builder(1 << 16)
        self.kinds = sorted({op.kind for graph in file.subgraphs for op in graph.ops})
        self.contents = [b""]  # buffer 0 is what tensors without data refer to
        self.index: dict[int, int] = {}

    def data(self) -> bytes:
        codes = self._offsets([self._code(kind) for kind in self.kinds])
        subgraphs = self._offsets([self._subgraph(graph) for graph in self.file.subgraphs])
        buffers = self._offsets([self._buffer(content) for content in self.contents])
        description = self.builder.CreateString("covp")
        model = self._table(
            "Model",
            Version=_SCHEMA_VERSION,
            OperatorCodes=codes,
            Subgraphs=subgraphs,
            Description=description,
            Buffers=buffers,
        )
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())

    def _table(self, kind: str, **fields: Any) -> int:
        """Return a table of the schema; fields that are None are left out."""
        getattr(tflite, f"{kind}Start")(self.builder)
        for name, value in fields.items():
            if value is not None:
                getattr(tflite, f"{kind}Add{name}")(self.builder, value)
        end: int = getattr(tflite, f"{kind}End")(self.builder)
        return end

    def _offsets(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def _vector(self, values: Sequence[int] | NDArray[Any], dtype: Any = np.int32) -> int:
        return int(self.builder.CreateNumpyVector(np.array(values, dtype)))

    def _buffer(self, content: bytes) -> int:
        data = None
        if content:
            self.builder.StartVector(1, len(content), _BUFFER_ALIGNMENT)
            self.builder.head -= len(content)
            self.builder.Bytes[self.builder.head : self.builder.head + len(content)] = content
            data = self.builder.EndVector()
        return self._table("Buffer", Data=data)

    def _code(self, kind: str) -> int:
        number = getattr(tflite.BuiltinOperator, kind, None)
        custom = kind in CUSTOM_NAMES or kind not in OPS or find_user_operator(kind) is not None
        if number is None and custom:
            return self._table(
                "OperatorCode",
                DeprecatedBuiltinCode=tflite.BuiltinOperator.CUSTOM,
                BuiltinCode=tflite.BuiltinOperator.CUSTOM,
                CustomCode=self.builder.CreateString(CUSTOM_NAMES.get(kind, kind)),
                Version=1,
            )
        if number is None:
            raise ValueError(f"{kind} is not a TFLite operator")
        # readers older than 2021 know the one-byte field only
        return self._table(
            "OperatorCode",
            DeprecatedBuiltinCode=min(number, 127),
            BuiltinCode=number,
            Version=_VERSIONS.get(kind, 1),
        )

    def _subgraph(self, graph: Graph) -> int:
        tensors = list(graph.tensors())
        self.index = {id(tensor): i for i, tensor in enumerate(tensors)}
        tables = [self._tensor(tensor) for tensor in tensors]
        operators = [self._operator(op, tables) for op in graph.ops]
        return self._table(
            "SubGraph",
            Tensors=self._offsets(tables),
            Inputs=self._indices(graph.inputs),
            Outputs=self._indices(graph.outputs),
            Operators=self._offsets(operators),
            Name=self.builder.CreateString(graph.name),
        )

    def _indices(self, tensors: Sequence[Tensor | None]) -> int:
        return self._vector([-1 if t is None else self.index[id(t)] for t in tensors])

    def _tensor(self, tensor: Tensor) -> int:
        if tensor.dtype.name not in _TYPES:
            raise ValueError(f"tensor {tensor.name}: TFLite has no {tensor.dtype}")
        buffer = 0
        if tensor.data is not None:
            buffer = len(self.contents)
            self.contents.append(_content(tensor.data, tensor.bits))
        return self._table(
            "Tensor",
            Shape=self._vector(tensor.shape),
            Type=tflite.TensorType.INT4 if tensor.bits == 4 else _TYPES[tensor.dtype.name],
            Buffer=buffer,
            Name=self.builder.CreateString(tensor.name),
            Quantization=self._quantization(tensor),
            IsVariable=True if id(tensor) in self.file.variables else None,
        )

    def _quantization(self, tensor: Tensor) -> int | None:
        if tensor.quantization is None:
            return None
        return self._table(
            "QuantizationParameters",
            Scale=self._vector(tensor.quantization.scale, np.float32),
            ZeroPoint=self._vector(tensor.quantization.zero_point, np.int64),
            QuantizedDimension=tensor.quantization.axis,
        )

    def _operator(self, op: Op, tables: list[int]) -> int:
        options = builtin_options(op)
        table = None if options is None else self._options(*options)
        custom = custom_options(op)
        return self._table(
            "Operator",
            OpcodeIndex=self.kinds.index(op.kind),
            Inputs=self._indices(_without_trailing_gaps(op)),
            Outputs=self._indices(op.outputs),
            BuiltinOptionsType=(
                None if options is None else getattr(tflite.BuiltinOptions, options[0])
            ),
            BuiltinOptions=table,
            CustomOptions=None if custom is None else self.builder.CreateByteVector(custom),
            Intermediates=self._intermediates(op, tables),
        )

    def _options(self, kind: str, fields: dict[str, Any]) -> int:
        texts = {k: self.builder.CreateString(v) for k, v in fields.items() if isinstance(v, str)}
        return self._table(kind, **fields | texts)

    def _intermediates(self, op: Op, tables: list[int]) -> int | None:
        """Write five tensors that LiteRT's int8 LSTM demands; only the last one's scale matters."""
        if op.kind != "UNIDIRECTIONAL_SEQUENCE_LSTM" or op.output.dtype == np.float32:
            return None
        first = len(tables)
        for number in range(5):
            scaled = op.output.quantization if number == 4 else None
            dtype = op.output.dtype if number == 4 else np.dtype(np.float32)
            tables.append(self._tensor(Tensor(f"{op.name}_{number}", (0,), dtype, scaled)))
        return self._vector(range(first, first + 5))


def _content(data: NDArray[Any], bits: int | None) -> bytes:
    """Return the bytes of a constant; of int4 two values in each, the first in the lower half."""
    if bits != 4:
        return data.tobytes()
    flat = np.append(data.reshape(-1), np.zeros(data.size % 2, np.int8)).view(np.uint8)
    return bytes(((flat[::2] & 15) | (flat[1::2] << 4)).astype(np.uint8).tobytes())


def _without_trailing_gaps(op: Op) -> list[Tensor | None]:
    """Drop missing inputs at the end, as LiteRT demands for a bias; an LSTM keeps all 24."""
    kept = list(op.inputs)
    while kept and kept[-1] is None and op.kind != "UNIDIRECTIONAL_SEQUENCE_LSTM":
        kept.pop()
    return kept
