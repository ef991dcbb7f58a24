"""Small ONNX models beside onnxruntime: what is left out, what is rounded, what does not fit."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import covp
from covp.errors import ModelError
from covp.evaluation import Sample, build, run
from covp.evaluation.source.check import SourceCheck, compare
from covp.evaluation.source.oracle import NoAnswer, OracleLibrary
from covp.graph.onnx import load_onnx, read_onnx
from covp.graph.reference import run_reference

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402


def model_of(nodes, shape, dtype=np.float32, opset=20, out=None, **constants):
    """A model from x to y."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    last = helper.np_dtype_to_tensor_dtype(np.dtype(out or dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", number, shape)],
        [helper.make_tensor_value_info("y", last, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def beside_onnxruntime(model, x, folder: Path) -> SourceCheck:
    """What `check_source` compares, in this process; nothing of the file is optimized."""
    onnx.save(model, folder / "model.onnx")
    graph = covp.load_model(folder / "model.onnx")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    answer = dict(zip(names, session.run(None, {"x": x}), strict=True))
    sample = Sample.of(graph, [x])
    return compare(graph, [sample], sample.outputs, [answer], "onnxruntime")


@pytest.mark.parametrize("opset", [13, 17, 19, 21, 23])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_a_zero_point_that_is_left_out_is_zero(dtype: Any, opset: int, tmp_path: Path) -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"])
    model = model_of([node], (4,), dtype, opset, np.float32, s=np.float32(0.5))
    x = np.array([0, 1, 100, 127], dtype)
    expected = [0.0, 0.5, 50.0, 63.5]
    assert run_reference(read_onnx(model), [x])[0].tolist() == expected
    found = beside_onnxruntime(model, x, tmp_path)
    assert found.floats is not None and found.floats.unequal == 0
    # where no library is installed, the interpreter is a judge of its own
    onnx.save(model, tmp_path / "model.onnx")
    defined = load_onnx(tmp_path / "model.onnx", fused=False, defined=True)
    assert "DEQUANTIZE" not in {op.kind for op in defined.ops}
    assert run_reference(defined, [x])[0].tolist() == expected


def test_the_interpreter_judges_a_wrong_zero_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without onnxruntime: the reader's own idea of a zero point is not asked twice."""
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"])
    model = model_of([node], (4,), np.int8, 20, np.float32, s=np.float32(0.5))
    onnx.save(model, tmp_path / "model.onnx")

    def missing(path: Path) -> OracleLibrary:
        raise NoAnswer("it is not installed")

    monkeypatch.setattr(OracleLibrary, "for_file", missing)
    result = run(build(tmp_path / "model.onnx", "riscv32"), check="source")
    assert result.check.source is not None and result.matches_reference
    assert result.check.source.oracle == "covp's interpreter, nothing fused"
    monkeypatch.setattr(
        "covp.graph.onnx.quantized_values.ScaleAndZeroPoint.is_unsigned",
        property(lambda self: True),
    )
    assert not run(build(tmp_path / "model.onnx", "riscv32"), check="source").matches_reference


def test_the_type_of_an_output_that_has_no_zero_point() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=onnx.TensorProto.INT8),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    model = model_of(nodes, (5,), opset=21, s=np.float32(0.25))
    x = np.array([-40, -1, 0, 0.3, 40], np.float32)
    theirs = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert np.array_equal(run_reference(read_onnx(model), [x])[0], theirs)


def reduced(kind: str, seed: int, dtype: Any):
    rng = np.random.default_rng(seed)
    shape = (1, int(rng.integers(2, 9)), int(rng.integers(3, 30)))
    scale, zero = np.float32(10 ** rng.uniform(-2.5, 0)), dtype(rng.integers(20, 100))
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        helper.make_node(kind, ["d", "a"], ["m"], keepdims=1),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["y"]),
    ]
    model = model_of(nodes, shape, dtype, 18, s=scale, z=zero, a=np.array([2]))
    info = np.iinfo(dtype)
    return model, rng.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("seed", range(6))
def test_means_of_quantized_values_are_means_of_integers(
    seed: int, dtype: Any, tmp_path: Path
) -> None:
    """Their ties are frequent, and in floats the order of additions decides them."""
    model, x = reduced("ReduceMean", seed, dtype)
    assert beside_onnxruntime(model, x, tmp_path).holds
    graph = covp.load_model(tmp_path / "model.onnx")
    assert not any(t.dtype == np.float32 for op in graph.ops for t in op.outputs)
    (result,) = run_reference(graph, [x])
    zero = int(np.asarray(numpy_helper.to_array(model.graph.initializer[1])))
    exact = (x.astype(np.int64) - zero).sum(axis=2, keepdims=True) / x.shape[2]
    assert np.array_equal(result, np.rint(exact).astype(np.int64) + zero)


@pytest.mark.parametrize(
    "kind", ["ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd"]
)
@pytest.mark.parametrize("seed", range(2))
def test_float_reductions_add_in_the_order_of_the_kernel(
    kind: str, seed: int, tmp_path: Path
) -> None:
    """To the bit: a device and its reference may not turn a tie that follows."""
    model, x = reduced(kind, seed, np.int8)
    del model.graph.node[2]
    model.graph.node[1].output[0] = "y"
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    onnx.save(model, tmp_path / "model.onnx")
    graph = covp.load_model(tmp_path / "model.onnx")
    sample = Sample.of(graph, [x])
    result = run(build(tmp_path / "model.onnx", "riscv32"), sample, check="none")
    assert np.array_equal(result.outputs[0], sample.outputs[0])


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_extremes_of_quantized_values(kind: str, dtype: Any, tmp_path: Path) -> None:
    model, x = reduced(kind, 1, dtype)
    found = beside_onnxruntime(model, x, tmp_path)
    assert found.bytes and found.differ == 0


MODES = [
    (coordinates, rounding)
    for coordinates in (
        "half_pixel",
        "pytorch_half_pixel",
        "asymmetric",
        "align_corners",
        "half_pixel_symmetric",
    )
    for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
]


def resized(coordinates: str, rounding: str, extents: tuple[int, int], sizes: tuple[int, int]):
    node = helper.make_node(
        "Resize",
        ["x", "", "", "n"],
        ["y"],
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )
    return model_of([node], (1, 1, *extents), np.int8, 19, n=np.array([1, 1, *sizes]))


@pytest.mark.parametrize(("coordinates", "rounding"), MODES)
def test_nearest_elements_differ_by_a_rule_at_most(
    coordinates: str, rounding: str, tmp_path: Path
) -> None:
    sizes = [(7, 1), (7, 17), (14, 17), (14, 9), (14, 2), (15, 22), (19, 21), (3, 1), (11, 15)]
    for (height, tall), (width, wide) in pairwise(sizes):
        model = resized(coordinates, rounding, (height, width), (tall, wide))
        x = np.random.default_rng(0).permutation(height * width).astype(np.int8)
        found = beside_onnxruntime(model, x.reshape(1, 1, height, width), tmp_path)
        assert found.holds, str(found)
        assert {one.rule.name for one in found.operators if one.rule} <= {"nearest in float32"}


def test_another_element_than_the_nearest_is_a_difference(tmp_path: Path) -> None:
    model = resized("half_pixel", "floor", (7, 7), (9, 9))
    onnx.save(model, tmp_path / "model.onnx")
    graph = covp.load_model(tmp_path / "model.onnx")
    sample = Sample.of(graph, [np.arange(49, dtype=np.int8).reshape(1, 1, 7, 7)])
    wrong = sample.outputs[0].copy()
    wrong[0, 0, 2, 3] += 1
    found = compare(graph, [sample], sample.outputs, [{"y": wrong}], "onnxruntime")
    assert not found.holds


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
def test_pools_that_step_over_elements(kind: str, auto: str, tmp_path: Path) -> None:
    """SAME gives a negative padding where strides are larger than the window."""
    compared = 0
    for extent in range(2, 9):
        for window in (1, 2):
            for stride in range(window + 1, 6):
                how = {"kernel_shape": [window], "strides": [stride], "auto_pad": auto}
                node = helper.make_node(kind, ["x"], ["y"], **how)
                model = model_of([node], (1, 1, extent), opset=22)
                x = np.arange(1, extent + 1, dtype=np.float32).reshape(1, 1, -1)
                try:
                    theirs = runtime.InferenceSession(model.SerializeToString())
                    (wanted,) = theirs.run(None, {"x": x})
                except Exception:  # onnxruntime refuses a negative padding of MaxPool
                    continue
                compared += 1
                assert np.array_equal(run_reference(read_onnx(model), [x])[0], wanted)
    assert compared > 15


def test_a_window_that_is_larger_than_its_image() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], dilations=[3, 3], pads=[1, 3, 2, 2])
    model = model_of([node], (1, 3, 4, 6), w=np.zeros((2, 3, 4, 5), np.float32))
    with pytest.raises(ModelError, match=r"its window spans \(10, 13\), its padded image only"):
        read_onnx(model)


def test_a_scale_along_an_axis_of_a_number() -> None:
    """A weight without axes, and scales along one: one line, no division by zero."""
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0),
        helper.make_node("DequantizeLinear", ["x", "t"], ["e"]),
        helper.make_node("Conv", ["e", "d"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "t"], ["y"]),
    ]
    model = model_of(
        nodes, (1, 1, 3, 3), np.int8, out=np.uint8,
        w=np.int8(3), s=np.ones(2, np.float32), t=np.float32(1),
    )  # fmt: skip
    with pytest.raises(ModelError, match="DequantizeLinear"):
        read_onnx(model)
