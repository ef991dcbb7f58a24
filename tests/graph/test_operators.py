"""Every operator with random hyperparameters against LiteRT's reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.frontend.tflite import read_tflite
from covp.frontend.tflite_options import dilated, same_padding
from covp.graph.attributes import (
    Activation,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    LeakyRelu,
    Mean,
    Pad,
    Padding,
    Pool2D,
    ResizeNearest,
    Softmax,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Tensor
from covp.graph.reference import run_reference
from covp.zoo.builder import GraphBuilder, quantization, single_op_graph
from covp.zoo.tflite_writer import write_tflite

bounded = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
seeds = st.integers(0, 2**32 - 1)
zero_points = st.integers(-128, 127)
activations: st.SearchStrategy[Activation] = st.sampled_from(
    ["none", "relu", "relu6", "relu_n1_to_1"]
)
dtypes = st.sampled_from(["int8", "float32"])
extents = st.integers(1, 9)
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


class Case:
    """One drawn example: tensors of one dtype, with drawn quantization for int8."""

    def __init__(self, data: st.DataObject, dtype: str | None = None) -> None:
        self.draw = data.draw
        self.dtype = dtype or self.draw(dtypes, "dtype")
        self.seed = self.draw(seeds, "seed")
        self.rng = np.random.default_rng(self.seed)
        self.count = 0

    @property
    def quantized(self) -> bool:
        return self.dtype == "int8"

    def input(self, *shape: int, like: Tensor | None = None, largest_scale: float = 4.0) -> Tensor:
        """A tensor whose value comes at run time."""
        self.count += 1
        drawn = {} if like is not None else self.scale(largest_scale)
        scaled = like.quantization if like is not None else quantization(**drawn)
        name = f"input_{self.count}"
        return Tensor(name, shape, np.dtype(self.dtype), scaled if self.quantized else None)

    def scale(self, largest: float = 4.0) -> dict[str, Any]:
        """Keywords of an output's quantization."""
        if not self.quantized:
            return {"scale": None}
        return {
            "scale": self.draw(st.floats(2**-9, largest, width=32), "scale"),
            "zero_point": self.draw(zero_points, "zero point"),
        }

    def weights(self, shape: tuple[int, ...], axis: int, per_channel: bool) -> Tensor:
        builder = GraphBuilder()
        if not self.quantized:
            tensor = builder.constant(self.rng.uniform(-1, 1, shape).astype(np.float32))
        else:
            data = self.rng.integers(-127, 128, shape).astype(np.int8)
            count = shape[axis] if per_channel else 1
            tensor = builder.constant(data, self.rng.uniform(2e-4, 2e-2, count), axis=axis)
        tensor.name = "weights"
        return tensor

    def bias(
        self, channels: int, source: Tensor, weights: Tensor, optional: bool = True
    ) -> Tensor | None:
        if optional and not self.draw(st.booleans(), "bias"):
            return None
        builder = GraphBuilder()
        if not self.quantized:
            tensor = builder.constant(self.rng.uniform(-1, 1, channels).astype(np.float32))
        else:
            data = self.rng.integers(-(2**15), 2**15, channels).astype(np.int32)
            assert weights.quantization is not None
            product = np.float32(source.scale) * weights.quantization.scale
            tensor = builder.constant(data, product)
        tensor.name = "bias"
        return tensor

    def window(self, kernel: tuple[int, int], dilation: tuple[int, int] = (1, 1)) -> Any:
        """Size, stride and padding of an image that a window fits."""
        reach = dilated(kernel, dilation)
        size = self.draw(st.tuples(extents, extents), "size")
        stride = self.draw(pairs, "stride")
        if self.draw(st.booleans(), "same"):
            return size, stride, same_padding(size, reach, stride)
        return (size[0] + reach[0] - 1, size[1] + reach[1] - 1), stride, Padding()


def output_scale(case: Case, source: Tensor, weights: Tensor, terms: int) -> dict[str, Any]:
    """A scale at which the sums of random operands fill int8 but do not only saturate."""
    if not case.quantized:
        return {"scale": None}
    assert weights.quantization is not None
    product = source.scale * float(weights.quantization.scale.max())
    spread = case.draw(st.floats(0.2, 3.0), "spread")
    return {
        "scale": product * 74 * 74 * np.sqrt(terms) / 60 * spread,
        "zero_point": case.draw(zero_points, "output zero point"),
    }


@bounded
@given(st.data())
def test_conv2d(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    kernel, dilation = case.draw(pairs, "kernel"), case.draw(pairs, "dilation")
    (height, width), stride, padding = case.window(kernel, dilation)
    channels, filters = case.draw(extents), case.draw(extents)
    x = case.input(case.draw(st.integers(1, 2)), height, width, channels)
    weights = case.weights((filters, *kernel, channels), 0, case.draw(st.booleans()))
    bias = case.bias(filters, x, weights, optional=False)
    attributes = Conv2D(stride, padding, dilation, case.draw(activations))
    scale = output_scale(case, x, weights, kernel[0] * kernel[1] * channels)
    holds(single_op_graph("CONV_2D", x, weights, bias, attributes=attributes, **scale), case.seed)


def test_conv2d_without_bias() -> None:
    """LiteRT refuses such a CONV_2D, TFLM takes it: the same as a bias of zeros."""
    builder = GraphBuilder()
    x = builder.input((1, 4, 4, 3), scale=0.5, zero_point=7)
    rng = np.random.default_rng(0)
    weights = builder.constant(rng.integers(-127, 128, (5, 2, 2, 3)).astype(np.int8), 0.01)
    zeros = builder.constant(np.zeros(5, np.int32), 0.005)
    value = rng.integers(-128, 128, x.shape).astype(np.int8)
    outputs = []
    for bias in (None, zeros):
        attributes = Conv2D((1, 1), Padding())
        graph = single_op_graph("CONV_2D", x, weights, bias, attributes=attributes, scale=2.0)
        outputs += run_reference(read_tflite(write_tflite(graph)), [value])
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert len(np.unique(outputs[0])) > 10


@bounded
@given(st.data())
def test_depthwise_conv2d(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    kernel, dilation = case.draw(pairs, "kernel"), case.draw(pairs, "dilation")
    (height, width), stride, padding = case.window(kernel, dilation)
    channels, multiplier = case.draw(extents), case.draw(st.integers(1, 3))
    x = case.input(case.draw(st.integers(1, 2)), height, width, channels)
    weights = case.weights((1, *kernel, channels * multiplier), 3, case.draw(st.booleans()))
    bias = case.bias(channels * multiplier, x, weights)
    attributes = DepthwiseConv2D(stride, padding, dilation, multiplier, case.draw(activations))
    scale = output_scale(case, x, weights, kernel[0] * kernel[1])
    graph = single_op_graph("DEPTHWISE_CONV_2D", x, weights, bias, attributes=attributes, **scale)
    holds(graph, case.seed)


@bounded
@given(st.data())
def test_fully_connected(holds: Any, data: st.DataObject) -> None:
    """LiteRT rounds once where TFLM rounds twice: int8 results may be one apart.

    `test_fully_connected_bits` holds the bits.
    """
    case = Case(data)
    depth, units = case.draw(st.integers(1, 40)), case.draw(extents)
    x = case.input(case.draw(st.integers(1, 3)), depth)
    weights = case.weights((units, depth), 0, False)
    bias = case.bias(units, x, weights)
    attributes = FullyConnected(case.draw(activations))
    scale = output_scale(case, x, weights, depth)
    graph = single_op_graph("FULLY_CONNECTED", x, weights, bias, attributes=attributes, **scale)
    holds(graph, case.seed, tolerance=1)


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
@bounded
@given(st.data())
def test_elementwise(holds: Any, kind: str, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    other = tuple(case.draw(st.sampled_from([1, n])) for n in shape)
    swapped = case.draw(st.booleans(), "swapped")
    first, second = (other, shape) if swapped else (shape, other)
    a, b = case.input(*first), case.input(*second)
    attributes = Elementwise(case.draw(activations))
    holds(single_op_graph(kind, a, b, attributes=attributes, **case.scale()), case.seed)


@pytest.mark.parametrize("kind", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@bounded
@given(st.data())
def test_pooling(holds: Any, kind: str, data: st.DataObject) -> None:
    case = Case(data)
    window = case.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)), "filter")
    (height, width), stride, padding = case.window(window)
    x = case.input(case.draw(st.integers(1, 2)), height, width, case.draw(extents))
    attributes = Pool2D(window, stride, padding, case.draw(activations))
    holds(single_op_graph(kind, x, attributes=attributes), case.seed)


@bounded
@given(st.data())
def test_mean(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    x = case.input(*shape)
    axes = case.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1), "axes")
    attributes = Mean(tuple(sorted(axes)), case.draw(st.booleans(), "keep dims"))
    same = case.draw(st.booleans(), "same scale")
    scale = {} if same else case.scale()
    holds(single_op_graph("MEAN", x, attributes=attributes, **scale), case.seed)


@bounded
@given(st.data())
def test_softmax(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    x = case.input(case.draw(st.integers(1, 3)), case.draw(st.integers(1, 40)))
    attributes = Softmax(case.draw(st.floats(0.25, 2, width=32), "beta"))
    scale = {"scale": 1 / 256, "zero_point": -128} if case.quantized else {}
    holds(single_op_graph("SOFTMAX", x, attributes=attributes, **scale), case.seed)


@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
@bounded
@given(st.data())
def test_saturating_functions(holds: Any, kind: str, data: st.DataObject) -> None:
    """LiteRT's int8 tables come from float functions, TFLM's results from fixed-point ones.

    TFLM gives up on inputs of 16 and more; above a scale of 1/2 whole steps fall there.
    """
    case = Case(data)
    fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}[kind]
    scale = dict(zip(("scale", "zero_point"), fixed, strict=True)) if case.quantized else {}
    holds(single_op_graph(kind, case.input(2, 128, largest_scale=0.5), **scale), case.seed, 1)


@pytest.mark.parametrize("kind", ["RELU", "RELU6", "LEAKY_RELU"])
@bounded
@given(st.data())
def test_rectifiers(holds: Any, kind: str, data: st.DataObject) -> None:
    case = Case(data)
    alpha = case.draw(st.floats(0, 1, width=32), "alpha")
    attributes = LeakyRelu(alpha) if kind == "LEAKY_RELU" else None
    graph = single_op_graph(kind, case.input(2, 128), attributes=attributes, **case.scale())
    holds(graph, case.seed)


@pytest.mark.parametrize("kind", ["PAD", "PADV2"])
@bounded
@given(st.data())
def test_pad(holds: Any, kind: str, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    x = case.input(*shape)
    amount = st.integers(0, 3)
    paddings = tuple(case.draw(st.tuples(amount, amount)) for _ in shape)
    value = float(x.zero_point) if case.quantized else 0.0
    if kind == "PADV2":
        value = float(case.draw(st.integers(-128, 127), "value"))
    holds(single_op_graph(kind, x, attributes=Pad(paddings, value)), case.seed)


@bounded
@given(st.data())
def test_concatenation(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    axis = case.draw(st.integers(0, len(shape) - 1), "axis")
    first = case.input(*shape)
    others = [
        case.input(*shape[:axis], case.draw(extents), *shape[axis + 1 :], like=first)
        for _ in range(case.draw(st.integers(0, 3), "others"))
    ]
    holds(single_op_graph("CONCATENATION", first, *others, attributes=Concatenation(axis)), 0)


@bounded
@given(st.data())
def test_reshape(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    new = tuple(case.draw(st.permutations(shape)))
    holds(single_op_graph("RESHAPE", case.input(*shape), shape=(*new, 1)), case.seed)


@bounded
@given(st.data())
def test_transpose(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    permutation = tuple(case.draw(st.permutations(range(len(shape)))))
    holds(
        single_op_graph("TRANSPOSE", case.input(*shape), attributes=Transpose(permutation)),
        case.seed,
    )


@bounded
@given(st.data())
def test_strided_slice(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    shape = case.draw(shapes, "shape")
    slices: list[tuple[int, int | None, int]] = []
    shrink: list[int] = []
    for axis, extent in enumerate(shape):
        start = case.draw(st.integers(0, extent - 1), "begin")
        if len(shape) > 1 and len(shrink) < len(shape) - 1 and case.draw(st.booleans(), "shrink"):
            slices.append((start, start + 1, 1))
            shrink.append(axis)
        elif case.draw(st.booleans(), "backwards"):
            slices.append((start, None, -case.draw(st.integers(1, 3))))
        else:
            end = case.draw(st.integers(start + 1, extent), "end")
            slices.append((start, end, case.draw(st.integers(1, 3))))
    attributes = StridedSlice(tuple(slices), tuple(shrink))
    holds(single_op_graph("STRIDED_SLICE", case.input(*shape), attributes=attributes), case.seed)


@bounded
@given(st.data())
def test_split(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    shape = list(case.draw(shapes, "shape"))
    axis = case.draw(st.integers(0, len(shape) - 1), "axis")
    parts = case.draw(st.integers(1, 4), "parts")
    shape[axis] *= parts
    graph = single_op_graph("SPLIT", case.input(*shape), attributes=Split(axis), outputs=parts)
    holds(graph, case.seed)


@bounded
@given(st.data())
def test_resize_nearest_neighbor(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    x = case.input(*(case.draw(extents) for _ in range(4)))
    size = case.draw(st.tuples(st.integers(1, 15), st.integers(1, 15)), "size")
    # TFLite refuses the two together
    corners, half = case.draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    attributes = ResizeNearest(size, corners, half)
    holds(single_op_graph("RESIZE_NEAREST_NEIGHBOR", x, attributes=attributes), case.seed)


@bounded
@given(st.data())
def test_quantize(holds: Any, data: st.DataObject) -> None:
    case = Case(data)
    x = case.input(2, 100)
    case.dtype = "int8"
    holds(single_op_graph("QUANTIZE", x, dtype=np.int8, **case.scale()), case.seed)


@bounded
@given(st.data())
def test_dequantize(holds: Any, data: st.DataObject) -> None:
    case = Case(data, "int8")
    holds(single_op_graph("DEQUANTIZE", case.input(2, 100), dtype=np.float32), case.seed)
