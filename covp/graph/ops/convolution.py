"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.arithmetic import SumType
from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Op
from covp.graph.index_map import Index, IndexMap, Reads, Space, regroup, slid
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type
from covp.graph.quantization import float_activation_range
from covp.graph.typed_convolution import resolve


def conv2d_accumulate(
    x: NDArray[np.int8] | NDArray[np.int16],
    weights: NDArray[np.int8],
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: Padding = Padding(),  # noqa: B008  (frozen)
    zero_point: int = 0,
    sum_type: SumType = np.int32,
) -> NDArray[Any]:
    """Return the sums of a convolution, without bias: exact, through BLAS.

    Args:
        x: int8 or int16, NHWC.
        weights: int8, OHWI.
        stride, dilation: (height, width), positive.
        padding: rows and columns around each image; it contributes nothing.
        zero_point: of the input, subtracted from it.
        sum_type: of the sums, which wrap to it.

    Returns:
        (batch, out height, out width, O) of ``sum_type``.

    Raises:
        ValueError: the weights are for another number of input channels.
    """
    batch, _, _, channels = x.shape
    outputs, kh, kw, depth = weights.shape
    if depth != channels:
        raise ValueError(f"{channels} input channels, filters of {depth}")
    flat = weights.reshape(outputs, -1)
    # single precision is exact while no partial sum can reach 2**24
    most = 255 if x.dtype == np.int8 else (1 << 16) - 1
    largest = most * int(np.abs(flat.astype(np.int64)).sum(axis=1).max(initial=0))
    dtype = np.dtype(np.float32 if largest < 1 << 24 else np.float64)
    image = _pad(x.astype(dtype) - np.asarray(zero_point, dtype), padding)
    patches = _patches(image, (kh, kw), stride, dilation)
    rows = patches.reshape(-1, kh * kw * channels)
    sums = rows @ flat.T.astype(dtype)
    shape = (batch, patches.shape[1], patches.shape[2], outputs)
    if dtype == np.float64:
        sums = sums.astype(np.int64)  # which wraps as int32
    return np.asarray(sums.astype(sum_type).reshape(shape))


def depthwise_accumulate(
    x: NDArray[np.int8] | NDArray[np.int16],
    weights: NDArray[np.int8],
    stride: Pair,
    dilation: Pair,
    padding: Padding,
    zero_point: int,
    sum_type: SumType = np.int32,
) -> NDArray[Any]:
    """Sum products like `conv2d_accumulate`, for weights (height, width, O), O a multiple of C."""
    image = _pad(x.astype(sum_type) - np.asarray(zero_point, sum_type), padding)
    return _depthwise_sums(image, weights.astype(sum_type), stride, dilation)


def _depthwise_sums(image: Array, weights: Array, stride: Pair, dilation: Pair) -> Array:
    kh, kw, outputs = weights.shape
    patches = _patches(image, (kh, kw), stride, dilation)
    multiplier = outputs // image.shape[3]
    sums = np.zeros((*patches.shape[:3], outputs), image.dtype)
    for y, x in np.ndindex(kh, kw):
        tap = patches[:, :, :, y, x]
        sums += (np.repeat(tap, multiplier, axis=3) if multiplier > 1 else tap) * weights[y, x]
    return sums


def _pad(image: Array, padding: Padding) -> Array:
    if not padding.any:
        return image
    rows, columns = (padding.top, padding.bottom), (padding.left, padding.right)
    return np.pad(image, ((0, 0), rows, columns, (0, 0)))


def _patches(image: Array, kernel: Pair, stride: Pair, dilation: Pair) -> Array:
    """Return a view (batch, out height, out width, kernel height, kernel width, channels)."""
    batch, height, width, channels = image.shape
    out = [
        (extent - (k - 1) * d - 1) // s + 1
        for extent, k, d, s in zip((height, width), kernel, dilation, stride, strict=True)
    ]
    b, y, x, c = image.strides
    return as_strided(
        image,
        (batch, *out, *kernel, channels),
        (b, y * stride[0], x * stride[1], y * dilation[0], x * dilation[1], c),
        writeable=False,
    )


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    if op.input(0).dtype == np.float32:
        with ieee():
            return [_float_reference(op, values)]
    problem = resolve(op)
    shape = (problem.batch, problem.in_height, problem.in_width, problem.in_channels)
    accumulate = depthwise_accumulate if problem.depthwise else conv2d_accumulate
    sums = accumulate(
        given(values, 0).reshape(shape),
        problem.weights,
        problem.stride,
        problem.dilation,
        problem.padding,
        problem.input_zero_point,
        problem.arithmetic.sum_type,
    )
    result = problem.arithmetic.finish(sums + problem.bias, problem.scaling)
    return [result.astype(op.output.dtype).reshape(op.output.shape)]


def _float_reference(op: Op, values: Sequence[Array | None]) -> Array:
    x, weights = given(values, 0), given(values, 1)
    bias = values[2] if len(values) > 2 else None
    attributes: Any = op.attributes
    if op.kind == "FULLY_CONNECTED":
        sums = x.reshape(-1, weights.shape[1]) @ weights.T
    elif attributes.padding.any and not np.isfinite(weights).all():
        sums = _sums_inside(op, x, weights)
    elif op.kind == "DEPTHWISE_CONV_2D":
        image = _pad(x, attributes.padding)
        sums = _depthwise_sums(image, weights[0], attributes.stride, attributes.dilation)
    else:
        image = _pad(x, attributes.padding)
        kernel = (weights.shape[1], weights.shape[2])
        patches = _patches(image, kernel, attributes.stride, attributes.dilation)
        rows = patches.reshape(-1, weights[0].size)
        sums = rows @ weights.reshape(weights.shape[0], -1).T
    sums = sums.reshape(op.output.shape)
    if bias is not None:
        sums = sums + bias.reshape(-1)
    low, high = float_activation_range(attributes.activation)
    return np.asarray(np.clip(sums, low, high).astype(np.float32))


def _sums_inside(op: Op, x: Array, weights: Array) -> Array:
    """Sum over taps inside the image alone: a padded 0 times an infinite weight would be NaN."""
    a: Any = op.attributes
    kernel = (weights.shape[1], weights.shape[2])
    patches = _patches(_pad(x, a.padding), kernel, a.stride, a.dilation)
    image = np.ones((1, *x.shape[1:3], 1), bool)
    inside = _patches(_pad(image, a.padding), kernel, a.stride, a.dilation)
    sums = np.zeros((*patches.shape[:3], op.output.shape[3]), np.float32)
    for row, column in np.ndindex(kernel):
        tap, factors = patches[:, :, :, row, column], weights[:, row, column]
        if op.kind == "DEPTHWISE_CONV_2D":
            products = np.repeat(tap, sums.shape[3] // tap.shape[3], axis=3) * factors[0]
        else:
            products = tap @ factors.T
        sums += np.where(inside[:, :, :, row, column], products, np.float32(0))
    return sums


def _image_shape(op: Op, outputs: int) -> list[Shape]:
    a: Any = op.attributes
    source, weights = op.input(0).shape, op.input(1).shape
    if len(source) != 4 or len(weights) != 4:
        raise ModelError(f"shapes {source} and {weights} are not NHWC and a 4-D filter")
    pads = (a.padding.top + a.padding.bottom, a.padding.left + a.padding.right)
    out = tuple(
        (source[i + 1] + pads[i] - (weights[i + 1] - 1) * a.dilation[i] - 1) // a.stride[i] + 1
        for i in (0, 1)
    )
    _check_bias(op, outputs)
    return [(source[0], *out, outputs)]


def _check_bias(op: Op, outputs: int) -> None:
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if bias is not None and bias.size != outputs:
        raise ModelError(f"bias {bias.name} has {bias.size} values for {outputs} channels")
    scales = op.input(1).quantization
    if scales is not None and scales.scale.size not in (1, outputs):
        raise ModelError(f"{scales.scale.size} filter scales for {outputs} channels")


def _conv2d_shape(op: Op) -> list[Shape]:
    source, weights = op.input(0).shape, op.input(1).shape
    if len(source) == len(weights) == 4 and source[3] != weights[3]:
        raise ModelError(
            f"{source[3]} input channels but filters of {weights[3]}: grouped convolution is not "
            "supported; split it into one convolution a group"
        )
    return _image_shape(op, weights[0])


def _depthwise_shape(op: Op) -> list[Shape]:
    weights = op.input(1).shape
    if len(weights) == 4 and weights[0] != 1:
        raise ModelError(f"depthwise filter {weights} must be 1HWO")
    return _image_shape(op, weights[3])


def _fully_connected_shape(op: Op) -> list[Shape]:
    source, weights = op.input(0), op.input(1).shape
    if len(weights) != 2 or weights[1] == 0 or source.size % weights[1]:
        raise ModelError(f"shapes {source.shape} and {weights} do not fit a matrix product")
    _check_bias(op, weights[0])
    if op.attributes.keep_num_dims:
        return [(*source.shape[:-1], weights[0])]
    return [(source.size // weights[1], weights[0])]


def bias_reads(op: Op, channel: Index) -> Reads | None:
    """Return the bias of a channel; None where it is left out."""
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    return None if bias is None else regroup((bias.size,), (channel,), bias.shape)


def _image_reads(op: Op) -> list[IndexMap]:
    a: Any = op.attributes
    space, source, weights = Space(op), op.input(0).shape, op.input(1).shape
    batch, *places, channel = space.axes
    taps = space.loops(weights[1:3])
    before = (a.padding.top, a.padding.left)
    image = slid(places, taps, a.stride, before, a.dilation)
    if op.kind == "DEPTHWISE_CONV_2D":
        depth = channel // (weights[3] // source[3])
        filters: Reads = (Index(), *taps, channel)
    else:
        depth = space.loop(weights[3])
        filters = (channel, *taps, depth)
    return [space.make_map((batch, *image, depth), filters, bias_reads(op, channel))]


def _fully_connected_reads(op: Op) -> list[IndexMap]:
    space, source, depth = Space(op), op.input(0).shape, op.input(1).shape[1]
    *places, channel = space.axes
    element = space.loop(depth)
    extents = (*op.output.shape[:-1], depth)
    x = regroup(extents, (*places, element), source)
    return [space.make_map(x, (channel, element), bias_reads(op, channel))]


def _macs(op: Op) -> int:
    weights = op.input(1)
    if op.kind == "DEPTHWISE_CONV_2D":
        return op.output.size * weights.shape[1] * weights.shape[2]
    return op.output.size * (weights.size // weights.shape[0])


_TYPES = of_one_type("int8", "int16", "float32")
_layer = partial(
    OpDefinition, reference=_reference, macs=_macs, types=_TYPES, is_product=True, clamps=True
)
OPS["CONV_2D"] = _layer(_conv2d_shape, reads=_image_reads)
OPS["DEPTHWISE_CONV_2D"] = _layer(_depthwise_shape, reads=_image_reads)
OPS["FULLY_CONNECTED"] = _layer(_fully_connected_shape, reads=_fully_connected_reads)
