"""Attribute objects into builtin options: the reverse of `covp.graph.tflite.converters`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers

from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Op
from covp.graph.tflite.converters.common import dilated_size, same_padding

Fields = dict[str, Any]

_ACTIVATIONS = {
    "none": tflite.ActivationFunctionType.NONE,
    "relu": tflite.ActivationFunctionType.RELU,
    "relu6": tflite.ActivationFunctionType.RELU6,
    "relu_n1_to_1": tflite.ActivationFunctionType.RELU_N1_TO_1,
}


def builtin_options(op: Op) -> tuple[str, Fields] | None:
    """Return the name of the options table and its fields; None where TFLite has no table."""
    if op.kind not in _WRITERS:
        return None
    table, fields = _WRITERS[op.kind]
    return table, fields(op)


CUSTOM_NAMES = {"DETECTION_POSTPROCESS": "TFLite_Detection_PostProcess"}
"""Kinds that are custom operators in files, and their names there."""


def custom_options(op: Op) -> bytes | None:
    """Return the options of a custom operator, a FlexBuffer; None for other kinds."""
    if op.kind not in CUSTOM_NAMES:
        return None
    a = op.attributes
    values = {f"{axis}_scale": scale for axis, scale in zip("yxhw", a.scales, strict=True)}
    values |= {"nms_score_threshold": a.score, "nms_iou_threshold": a.overlap}
    numbers = {"max_detections": a.most, "num_classes": a.classes, "max_classes_per_detection": 1}
    return bytes(flexbuffers.Dumps(values | numbers))


def _padding(op: Op, window: Pair) -> int:
    """Return SAME or VALID, whichever gives the padding that the attributes state."""
    wanted: Padding = op.attributes.padding
    if not wanted.any:
        return int(tflite.Padding.VALID)
    height, width = op.input(0).shape[1:3]
    if wanted != same_padding((height, width), window, op.attributes.stride):
        raise ValueError(f"{op.name}: TFLite has no {wanted}; use a PAD operator")
    return int(tflite.Padding.SAME)


def _activation(op: Op) -> Fields:
    return {"FusedActivationFunction": _ACTIVATIONS[op.attributes.activation]}


def _sum(op: Op) -> Fields:
    # of int16 LiteRT would else shift where the scales are powers of two; TFLM scales in any case
    return _activation(op) | {"PotScaleInt16": False}


def _strides(op: Op) -> Fields:
    return {"StrideH": op.attributes.stride[0], "StrideW": op.attributes.stride[1]}


def _convolution(op: Op) -> Fields:
    a, weights = op.attributes, op.input(1).shape
    window = dilated_size((weights[1], weights[2]), a.dilation)
    fields = {
        "Padding": _padding(op, window),
        "DilationHFactor": a.dilation[0],
        "DilationWFactor": a.dilation[1],
    }
    if op.kind == "CONV_2D":
        fields |= _bias_type(op)
    if op.kind == "DEPTHWISE_CONV_2D":
        fields["DepthMultiplier"] = a.depth_multiplier
    return fields | _strides(op) | _activation(op)


def _bias_type(op: Op) -> Fields:
    """Return the option that makes LiteRT sum int16 layers with an int32 bias in 32 bits."""
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if op.input(0).dtype != np.int16 or bias is None or bias.dtype != np.int32:
        return {}
    return {"QuantizedBiasType": tflite.TensorType.INT32}


def _transpose_conv(op: Op) -> Fields:
    """Return the options of an operator in a file's form, see `covp.graph.zoo.tflite_writer`."""
    a, weights = op.attributes, op.input(1).shape
    same = same_padding(a.size, (weights[1], weights[2]), a.stride)
    if a.before == (same.top, same.left) and op.input(2).shape[1:3] == tuple(
        -(-extent // step) for extent, step in zip(a.size, a.stride, strict=True)
    ):
        padding = tflite.Padding.SAME
    elif a.before == (0, 0):
        padding = tflite.Padding.VALID
    else:
        raise ValueError(f"{op.name}: TFLite cannot cut {a.before} off")
    return {"Padding": padding} | _strides(op) | _activation(op)


def _pool(op: Op) -> Fields:
    height, width = op.attributes.filter
    size = {"FilterHeight": height, "FilterWidth": width}
    return {"Padding": _padding(op, op.attributes.filter)} | size | _strides(op) | _activation(op)


def _strided_slice(op: Op) -> Fields:
    a = op.attributes
    to_the_end = sum(1 << axis for axis, (_, end, _) in enumerate(a.slices) if end is None)
    return {"EndMask": to_the_end, "ShrinkAxisMask": sum(1 << axis for axis in a.shrink)}


def _resize(op: Op) -> Fields:
    a = op.attributes
    return {"AlignCorners": a.align_corners, "HalfPixelCenters": a.half_pixel_centers}


def _no_options(op: Op) -> Fields:
    return {}


def _keep_dims(op: Op) -> Fields:
    return {"KeepDims": op.attributes.keep_dims}


_INDEX_TYPES = {"int32": tflite.TensorType.INT32, "int64": tflite.TensorType.INT64}
_REDUCER = ("ReducerOptions", _keep_dims)
_WRITERS: dict[str, tuple[str, Callable[[Op], Fields]]] = {
    "ADD": ("AddOptions", _sum),
    "ARG_MAX": ("ArgMaxOptions", lambda op: {"OutputType": _INDEX_TYPES[op.output.dtype.name]}),
    "ARG_MIN": ("ArgMinOptions", lambda op: {"OutputType": _INDEX_TYPES[op.output.dtype.name]}),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _pool),
    "BATCH_MATMUL": (
        "BatchMatMulOptions",
        lambda op: {"AdjX": op.attributes.adj_x, "AdjY": op.attributes.adj_y},
    ),
    "CALL_ONCE": ("CallOnceOptions", lambda op: {"InitSubgraphIndex": 1}),
    "BATCH_TO_SPACE_ND": ("BatchToSpaceNDOptions", _no_options),
    "BROADCAST_TO": ("BroadcastToOptions", _no_options),
    "CONCATENATION": (
        "ConcatenationOptions",
        lambda op: {"Axis": op.attributes.axis} | _activation(op),
    ),
    "CONV_2D": ("Conv2DOptions", _convolution),
    "CUMSUM": (
        "CumsumOptions",
        lambda op: {"Exclusive": op.attributes.exclusive, "Reverse": op.attributes.reverse},
    ),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", _convolution),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", lambda op: {"BlockSize": op.attributes.size}),
    "DEQUANTIZE": ("DequantizeOptions", _no_options),
    "DIV": ("DivOptions", _activation),
    "EXPAND_DIMS": ("ExpandDimsOptions", _no_options),
    "FULLY_CONNECTED": (
        "FullyConnectedOptions",
        lambda op: {"KeepNumDims": op.attributes.keep_num_dims} | _activation(op) | _bias_type(op),
    ),
    "GELU": ("GeluOptions", lambda op: {"Approximate": op.attributes.approximate}),
    "GATHER": (
        "GatherOptions",
        lambda op: {"Axis": op.attributes.axis, "BatchDims": op.attributes.batches},
    ),
    "GATHER_ND": ("GatherNdOptions", _no_options),
    "L2_NORMALIZATION": ("L2NormOptions", _no_options),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        lambda op: {
            "Radius": op.attributes.before,
            "Bias": op.attributes.bias,
            "Alpha": op.attributes.alpha,
            "Beta": op.attributes.beta,
        },
    ),
    "LEAKY_RELU": ("LeakyReluOptions", lambda op: {"Alpha": op.attributes.alpha}),
    "MAX_POOL_2D": ("Pool2DOptions", _pool),
    "MIRROR_PAD": ("MirrorPadOptions", lambda op: {"Mode": op.attributes.mode == "symmetric"}),
    "MEAN": _REDUCER,
    "MUL": ("MulOptions", _activation),
    "ONE_HOT": ("OneHotOptions", lambda op: {"Axis": op.attributes.axis}),
    "PACK": (
        "PackOptions",
        lambda op: {"ValuesCount": len(op.inputs), "Axis": op.attributes.axis},
    ),
    "PAD": ("PadOptions", _no_options),
    "PADV2": ("PadV2Options", _no_options),
    "QUANTIZE": ("QuantizeOptions", _no_options),
    "REDUCE_ALL": _REDUCER,
    "REDUCE_ANY": _REDUCER,
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "REDUCE_PROD": _REDUCER,
    "RESHAPE": ("ReshapeOptions", _no_options),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _resize),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _resize),
    "REVERSE_SEQUENCE": (
        "ReverseSequenceOptions",
        lambda op: {"SeqDim": op.attributes.time_axis, "BatchDim": op.attributes.batch_axis},
    ),
    "REVERSE_V2": ("ReverseV2Options", _no_options),
    "SCATTER_ND": ("ScatterNdOptions", _no_options),
    "SHAPE": ("ShapeOptions", lambda op: {"OutType": tflite.TensorType.INT32}),
    "SLICE": ("SliceOptions", _no_options),
    "SOFTMAX": ("SoftmaxOptions", lambda op: {"Beta": op.attributes.beta}),
    "SPACE_TO_BATCH_ND": ("SpaceToBatchNDOptions", _no_options),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", lambda op: {"BlockSize": op.attributes.size}),
    "SPLIT": ("SplitOptions", lambda op: {"NumSplits": len(op.outputs)}),
    "SPLIT_V": ("SplitVOptions", lambda op: {"NumSplits": len(op.outputs)}),
    "SQUEEZE": ("SqueezeOptions", _no_options),
    "STRIDED_SLICE": ("StridedSliceOptions", _strided_slice),
    "SUB": ("SubOptions", _sum),
    "TRANSPOSE_CONV": ("TransposeConvOptions", _transpose_conv),
    "TILE": ("TileOptions", _no_options),
    "SVDF": ("SVDFOptions", lambda op: {"Rank": op.attributes.rank} | _activation(op)),
    "SUM": _REDUCER,
    "TOPK_V2": ("TopKV2Options", _no_options),
    "TRANSPOSE": ("TransposeOptions", _no_options),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        lambda op: {
            "FusedActivationFunction": tflite.ActivationFunctionType.TANH,
            "CellClip": op.attributes.cell_clip,
            "TimeMajor": op.attributes.time_major,
        },
    ),
    "VAR_HANDLE": (
        "VarHandleOptions",
        lambda op: {"Container": "", "SharedName": op.attributes.name},
    ),
    "UNPACK": (
        "UnpackOptions",
        lambda op: {"Num": len(op.outputs), "Axis": op.attributes.axis},
    ),
}
"""The name of the options table, and the function that fills it, of each kind."""
