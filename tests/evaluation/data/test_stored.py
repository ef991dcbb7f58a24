"""Real values become stored ones as LiteRT's QUANTIZE and onnxruntime's QuantizeLinear have it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.evaluation.data.stored import quantize, quantize_half_even, real
from covp.graph.graph import Quantization, Tensor
from covp.graph.zoo.builder import single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite

Litert = Callable[[bytes, Sequence[NDArray[Any]]], list[NDArray[Any]]]


def tensor(dtype: str, scale: float, zero_point: int, shape: tuple[int, ...] = (1,)) -> Tensor:
    given = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
    return Tensor("x", shape, np.dtype(dtype), given)


def near_halves(scale: float) -> NDArray[np.float32]:
    """Every half step, its neighbours, and values far beyond what any type holds."""
    halves = np.arange(-600, 601, dtype=np.float32) * np.float32(0.5) * np.float32(scale)
    up, down = np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf))
    far = np.array([1e9, -1e9, 3e38, -3e38, 1e-45, -0.0], np.float32) * np.float32(scale)
    below = np.float32(0.49999997) * np.float32(scale)
    return np.concatenate([halves, up, down, far, [below, -below]]).astype(np.float32)


CASES = [("int8", 1.0, 0), ("int8", 0.5, 3), ("int8", 0.0371, -128), ("uint8", 1 / 255, 128),
         ("int16", 0.25, 0)]  # fmt: skip


@pytest.mark.parametrize(("dtype", "scale", "zero_point"), CASES)
def test_as_litert(dtype: str, scale: float, zero_point: int, litert: Litert) -> None:
    x = near_halves(scale)
    x = x[np.abs(x) < 1e6 * scale]  # its conversion to int32 wraps beyond
    source = Tensor("x", (1, x.size), np.dtype(np.float32))
    given = (scale, zero_point)
    graph = single_op_graph(
        "QUANTIZE", source, scale=given[0], zero_point=given[1], dtype=np.dtype(dtype)
    )
    (wanted,) = litert(write_tflite(graph), [x[None]])
    found = quantize(x[None], tensor(dtype, scale, zero_point))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("dtype", "scale", "zero_point"), CASES)
def test_halves_go_to_the_even_neighbour_as_in_onnx(
    dtype: str, scale: float, zero_point: int
) -> None:
    helper = pytest.importorskip("onnx.helper")
    runtime = pytest.importorskip("onnxruntime")
    x = near_halves(scale)
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info("y", kind, x.shape)],
        [
            helper.make_tensor("s", 1, [], [scale]),
            helper.make_tensor("z", kind, [], [zero_point]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, {"x": x})
    found = quantize_half_even(x, tensor(dtype, scale, zero_point))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("dtype", "scale", "zero_point"), CASES)
def test_stored_values_mean_themselves(dtype: str, scale: float, zero_point: int) -> None:
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    kind = tensor(dtype, scale, zero_point)
    for store in (quantize, quantize_half_even):
        np.testing.assert_array_equal(store(real(every, kind), kind), every)
