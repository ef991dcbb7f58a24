"""Writing a graph as a .tflite file: the reverse of `covp.frontend.tflite`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
import tflite
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import OPS
from covp.graph.user_operators import find_user_operator
from covp.zoo.tflite_options_writer import builtin_options

_TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "int8": tflite.TensorType.INT8,
    "uint8": tflite.TensorType.UINT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "bool": tflite.TensorType.BOOL,
    "float16": tflite.TensorType.FLOAT16,
}
_BUFFER_ALIGNMENT = 16
_SCHEMA_VERSION = 3


def write_tflite(graph: Graph) -> bytes:
    """The graph as a flatbuffer that TFLite and TFLM read.

    Raises:
        ValueError: a padding is neither what SAME nor what VALID gives, or an operator or dtype
            has no place in the format.
    """
    return _Writer(graph).data()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder: Any = flatbuffers.Builder(1 << 16)
        self.tensors = list(graph.tensors())
        self.index = {id(tensor): i for i, tensor in enumerate(self.tensors)}
        self.kinds = sorted({op.kind for op in graph.ops})

    def data(self) -> bytes:
        # buffer 0 is empty by convention: it is what tensors without data refer to
        contents = [b"", *(t.data.tobytes() for t in self.tensors if t.data is not None)]
        buffers = self._offsets([self._buffer(content) for content in contents])
        codes = self._offsets([self._code(kind) for kind in self.kinds])
        subgraphs = self._offsets([self._subgraph()])
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
        """A table of the schema; fields that are None are left out."""
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
        if number is None and (kind not in OPS or find_user_operator(kind) is not None):
            return self._table(
                "OperatorCode",
                DeprecatedBuiltinCode=tflite.BuiltinOperator.CUSTOM,
                BuiltinCode=tflite.BuiltinOperator.CUSTOM,
                CustomCode=self.builder.CreateString(kind),
                Version=1,
            )
        if number is None:
            raise ValueError(f"{kind} is no operator of TFLite")
        # readers of before 2021 know the one-byte field only
        return self._table(
            "OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=1
        )

    def _subgraph(self) -> int:
        buffer = 0
        tensors = []
        for tensor in self.tensors:
            buffer += tensor.data is not None
            tensors.append(self._tensor(tensor, buffer if tensor.data is not None else 0))
        operators = [self._operator(op) for op in self.graph.ops]
        return self._table(
            "SubGraph",
            Tensors=self._offsets(tensors),
            Inputs=self._indices(self.graph.inputs),
            Outputs=self._indices(self.graph.outputs),
            Operators=self._offsets(operators),
            Name=self.builder.CreateString(self.graph.name),
        )

    def _indices(self, tensors: Sequence[Tensor | None]) -> int:
        return self._vector([-1 if t is None else self.index[id(t)] for t in tensors])

    def _tensor(self, tensor: Tensor, buffer: int) -> int:
        if tensor.dtype.name not in _TYPES:
            raise ValueError(f"tensor {tensor.name}: TFLite has no {tensor.dtype}")
        return self._table(
            "Tensor",
            Shape=self._vector(tensor.shape),
            Type=_TYPES[tensor.dtype.name],
            Buffer=buffer,
            Name=self.builder.CreateString(tensor.name),
            Quantization=self._quantization(tensor),
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

    def _operator(self, op: Op) -> int:
        options = builtin_options(op)
        table = None if options is None else self._table(options[0], **options[1])
        return self._table(
            "Operator",
            OpcodeIndex=self.kinds.index(op.kind),
            Inputs=self._indices(_without_trailing_gaps(op.inputs)),
            Outputs=self._indices(op.outputs),
            BuiltinOptionsType=(
                None if options is None else getattr(tflite.BuiltinOptions, options[0])
            ),
            BuiltinOptions=table,
        )


def _without_trailing_gaps(inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """LiteRT wants a missing bias left out, not marked as missing."""
    kept = list(inputs)
    while kept and kept[-1] is None:
        kept.pop()
    return kept
