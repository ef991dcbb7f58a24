"""A `Graph` into the bytes of a .tflite file.

Made for synthetic models and for tests that hand single operators to LiteRT. Constant inputs that
TFLite wants (axes, paddings, shapes) have to be among the operators' inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers
import numpy as np
import tflite

from covp.errors import ModelError
from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Graph, Op, Tensor

_TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "int8": tflite.TensorType.INT8,
    "uint8": tflite.TensorType.UINT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "bool": tflite.TensorType.BOOL,
}
_ACTIVATIONS = {
    "none": tflite.ActivationFunctionType.NONE,
    "relu": tflite.ActivationFunctionType.RELU,
    "relu6": tflite.ActivationFunctionType.RELU6,
    "relu_n1_to_1": tflite.ActivationFunctionType.RELU_N1_TO_1,
}
Fields = dict[str, Any]


def write_tflite(graph: Graph, description: str = "") -> bytes:
    """The graph as a TFLite flatbuffer.

    Raises:
        ModelError: something TFLite cannot say, e.g. a padding that is neither SAME nor VALID.
    """
    return _Writer(graph, description).model()


class _Writer:
    def __init__(self, graph: Graph, description: str) -> None:
        self.graph = graph
        self.description = description
        self.builder = flatbuffers.Builder(1 << 16)
        self.tensors = list(graph.tensors())
        self.at = {id(tensor): index for index, tensor in enumerate(self.tensors)}
        self.kinds = sorted({op.kind for op in graph.ops})

    def model(self) -> bytes:
        constants = [t.data for t in self.tensors if t.data is not None]
        # buffer 0 is the empty one by convention
        buffers = [self._buffer(None), *(self._buffer(data) for data in constants)]
        subgraph = self._subgraph()
        codes = [self._code(kind) for kind in self.kinds]
        model = self._table(
            "Model",
            Version=3,
            OperatorCodes=self._offsets(codes),
            Subgraphs=self._offsets([subgraph]),
            Description=self.builder.CreateString(self.description),
            Buffers=self._offsets(buffers),
        )
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())

    def _table(self, kind: str, **fields: Any) -> int:
        """One table; offsets among the fields must have been made before."""
        getattr(tflite, f"{kind}Start")(self.builder)
        for name, value in fields.items():
            if value is not None:
                getattr(tflite, f"{kind}Add{name}")(self.builder, value)
        return int(getattr(tflite, f"{kind}End")(self.builder))

    def _offsets(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def _numbers(self, values: Any, dtype: type[np.generic]) -> int:
        return int(self.builder.CreateNumpyVector(np.asarray(values, dtype).reshape(-1)))

    def _buffer(self, data: Any) -> int:
        if data is None:
            return self._table("Buffer")
        raw = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        return self._table("Buffer", Data=self.builder.CreateNumpyVector(raw))

    def _code(self, kind: str) -> int:
        number = getattr(tflite.BuiltinOperator, kind)
        # old readers look at the small field
        return self._table(
            "OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=1
        )

    def _subgraph(self) -> int:
        buffer = 0
        tensors = []
        for tensor in self.tensors:
            buffer += tensor.constant
            tensors.append(self._tensor(tensor, buffer if tensor.constant else 0))
        operators = [self._operator(op) for op in self.graph.ops]
        return self._table(
            "SubGraph",
            Tensors=self._offsets(tensors),
            Inputs=self._numbers([self.at[id(t)] for t in self.graph.inputs], np.int32),
            Outputs=self._numbers([self.at[id(t)] for t in self.graph.outputs], np.int32),
            Operators=self._offsets(operators),
            Name=self.builder.CreateString(self.graph.name),
        )

    def _tensor(self, tensor: Tensor, buffer: int) -> int:
        parameters = tensor.quantization
        quantization = None
        if parameters is not None:
            quantization = self._table(
                "QuantizationParameters",
                Scale=self._numbers(parameters.scale, np.float32),
                ZeroPoint=self._numbers(parameters.zero_point, np.int64),
                QuantizedDimension=parameters.axis,
            )
        return self._table(
            "Tensor",
            Shape=self._numbers(tensor.shape, np.int32),
            Type=_TYPES[tensor.dtype.name],
            Buffer=buffer,
            Name=self.builder.CreateString(tensor.name),
            Quantization=quantization,
        )

    def _operator(self, op: Op) -> int:
        options_kind, fields = _OPTIONS.get(op.kind, _no_options)(op)
        inputs = [-1 if t is None else self.at[id(t)] for t in op.inputs]
        options = self._table(options_kind, **fields) if options_kind else None
        number = getattr(tflite.BuiltinOptions, options_kind) if options_kind else None
        return self._table(
            "Operator",
            OpcodeIndex=self.kinds.index(op.kind),
            Inputs=self._numbers(inputs, np.int32),
            Outputs=self._numbers([self.at[id(t)] for t in op.outputs], np.int32),
            BuiltinOptionsType=number,
            BuiltinOptions=options,
        )


def _no_options(op: Op) -> tuple[str, Fields]:
    return "", {}


def _padding(op: Op, padding: Padding, window: Pair, stride: Pair) -> int:
    if not padding.any:
        return int(tflite.Padding.VALID)
    size = op.input(0).shape[1:3]
    total = [
        max((-(-extent // step) - 1) * step + reach - extent, 0)
        for extent, reach, step in zip(size, window, stride, strict=True)
    ]
    top, left = total[0] // 2, total[1] // 2
    if padding != Padding(top, total[0] - top, left, total[1] - left):
        raise ModelError(f"{op.name}: {padding} is neither SAME nor VALID; TFLite has no other")
    return int(tflite.Padding.SAME)


def _window(op: Op) -> Fields:
    """What CONV_2D and DEPTHWISE_CONV_2D have in common."""
    a = op.attributes
    kernel = op.input(1).shape[1:3]
    window = tuple((k - 1) * d + 1 for k, d in zip(kernel, a.dilation, strict=True))
    return {
        "Padding": _padding(op, a.padding, (window[0], window[1]), a.stride),
        "StrideH": a.stride[0],
        "StrideW": a.stride[1],
        "DilationHFactor": a.dilation[0],
        "DilationWFactor": a.dilation[1],
        "FusedActivationFunction": _ACTIVATIONS[a.activation],
    }


def _conv2d(op: Op) -> tuple[str, Fields]:
    return "Conv2DOptions", _window(op)


def _depthwise(op: Op) -> tuple[str, Fields]:
    multiplier = {"DepthMultiplier": op.attributes.depth_multiplier}
    return "DepthwiseConv2DOptions", _window(op) | multiplier


def _fully_connected(op: Op) -> tuple[str, Fields]:
    a = op.attributes
    activation = _ACTIVATIONS[a.activation]
    return "FullyConnectedOptions", {
        "FusedActivationFunction": activation,
        "KeepNumDims": a.keep_num_dims,
    }


def _pool(op: Op) -> tuple[str, Fields]:
    a = op.attributes
    return "Pool2DOptions", {
        "Padding": _padding(op, a.padding, a.filter, a.stride),
        "StrideH": a.stride[0],
        "StrideW": a.stride[1],
        "FilterHeight": a.filter[0],
        "FilterWidth": a.filter[1],
        "FusedActivationFunction": _ACTIVATIONS[a.activation],
    }


def _elementwise(op: Op) -> tuple[str, Fields]:
    kind = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[op.kind]
    return kind, {"FusedActivationFunction": _ACTIVATIONS[op.attributes.activation]}


def _resize(op: Op) -> tuple[str, Fields]:
    a = op.attributes
    flags = {"AlignCorners": a.align_corners, "HalfPixelCenters": a.half_pixel_centers}
    return "ResizeNearestNeighborOptions", flags


def _concatenation(op: Op) -> tuple[str, Fields]:
    a = op.attributes
    fields = {"Axis": a.axis, "FusedActivationFunction": _ACTIVATIONS[a.activation]}
    return "ConcatenationOptions", fields


def _strided_slice(op: Op) -> tuple[str, Fields]:
    mask = sum(1 << axis for axis in op.attributes.shrink)
    return "StridedSliceOptions", {"ShrinkAxisMask": mask}


_OPTIONS: dict[str, Callable[[Op], tuple[str, Fields]]] = {
    "ADD": _elementwise,
    "AVERAGE_POOL_2D": _pool,
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv2d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "LEAKY_RELU": lambda op: ("LeakyReluOptions", {"Alpha": op.attributes.alpha}),
    "MAX_POOL_2D": _pool,
    "MEAN": lambda op: ("ReducerOptions", {"KeepDims": op.attributes.keep_dims}),
    "MUL": _elementwise,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "SOFTMAX": lambda op: ("SoftmaxOptions", {"Beta": op.attributes.beta}),
    "SPLIT": lambda op: ("SplitOptions", {"NumSplits": len(op.outputs)}),
    "STRIDED_SLICE": _strided_slice,
    "SUB": _elementwise,
}
