"""MatMul and Gemm, constant and run-time factors, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from covp.graph.onnx import read_onnx

_SHAPES = [
    ((4, 3), (3, 5)),
    ((2, 4, 3), (3, 5)),
    ((3,), (3, 5)),
    ((4, 3), (3,)),
    ((3,), (3,)),
    ((2, 1, 4, 3), (5, 3, 2)),
    ((2, 4, 3), (3,)),
    ((3,), (2, 3, 4)),
]


def _floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.costly
@pytest.mark.parametrize("constant", [(), (1,), (0,)])
def test_matmul(constant, one_node, on_cores):
    for first, second in _SHAPES:
        x, y = _floats(*first), _floats(*second)
        model = one_node("MatMul", [x, y], constants=constant)
        given = [value for i, value in enumerate((x, y)) if i not in constant]
        on_cores(model, given, [np.asarray(np.matmul(x, y))], platforms=["mps2-an386"])


@pytest.mark.parametrize("constant", [(), (1,), (1, 2), (2,)])
@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm(trans, constant, one_node, on_cores):
    x, y = _floats(4, 3), _floats(3, 5)
    for bias, (alpha, beta) in (((5,), (1.0, 1.0)), ((4, 1), (0.5, 2.0)), ((4, 5), (1.0, 0.25))):
        c = _floats(*bias)
        inputs = [x.T.copy() if trans[0] else x, y.T.copy() if trans[1] else y, c]
        attributes = {"transA": trans[0], "transB": trans[1], "alpha": alpha, "beta": beta}
        model = one_node("Gemm", inputs, constants=constant, **attributes)
        given = [value for i, value in enumerate(inputs) if i not in constant]
        on_cores(model, given, [alpha * (x @ y) + beta * c], platforms=["riscv32"])


def test_gemm_with_constant_weights_and_bias_is_one_layer(one_node):
    model = one_node(
        "Gemm", [_floats(4, 3), _floats(3, 5), _floats(5)], constants=(1, 2), alpha=0.5
    )
    assert [op.kind for op in read_onnx(model).ops] == ["FULLY_CONNECTED"]
