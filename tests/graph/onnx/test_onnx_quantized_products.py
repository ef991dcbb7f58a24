"""Products of two quantized matrices that come at run time: the bytes of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import covp
from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference


def model(first, second, scales, zeros, dtype):
    """QLinearMatMul of int8 or uint8 inputs a and b."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = []
    for name, scale, zero in zip("aby", scales, zeros, strict=True):
        constants += [
            onnx.numpy_helper.from_array(np.float32(scale), f"{name}_scale"),
            onnx.numpy_helper.from_array(np.dtype(dtype).type(zero), f"{name}_zero"),
        ]
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    shapes = {"a": first, "b": second}
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", names, ["y"])],
        "g",
        [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


SHAPES = [((5, 7), (7, 6)), ((2, 3, 20), (2, 20, 9)), ((2, 1, 4, 8), (3, 8, 5))]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("first", "second"), SHAPES)
@pytest.mark.parametrize("scale", [0.02, 0.0625, 0.3])
def test_every_byte(dtype, first, second, scale):
    zeros = (3, -5, 1) if dtype == np.int8 else (131, 120, 128)
    proto = model(first, second, (0.03125, 0.0625, scale), zeros, dtype)
    info, rng = np.iinfo(dtype), np.random.default_rng(7)
    values = [rng.integers(info.min, info.max + 1, s).astype(dtype) for s in (first, second)]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (wanted,) = session.run(None, dict(zip("ab", values, strict=True)))
    graph = read_onnx(proto)
    assert [op.kind for op in graph.ops].count("BATCH_MATMUL") == 1
    assert "ROUND" not in {op.kind for op in graph.ops}
    assert np.array_equal(run_reference(graph, values)[0], wanted)
    for platform in ("riscv32", "cortex-m4", "cortex-m0plus") if scale == 0.0625 else ():
        with covp.Session(platform) as core:
            found = core.load(covp.compile(graph, platform)).run(*values)
        assert np.array_equal(found, wanted)
