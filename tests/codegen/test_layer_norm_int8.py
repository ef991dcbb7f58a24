"""int8 layer normalization: the integers against real numbers, the cores against the integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.layer_norm_int8 import LayerNormInt8
from covp.graph.zoo.builder import quantization

INT8 = np.dtype(np.int8)


def layer(rows, depth, seed, scale=0.05, out_scale=0.02, zero=5, epsilon=1e-5, spread=40.0):
    rng = np.random.default_rng(seed)
    x = Tensor("x", (rows, depth), INT8, quantization(scale, -7))
    y = Tensor("y", (rows, depth), INT8, quantization(out_scale, zero))
    weights = [
        Tensor(name, (depth,), np.dtype(np.float32), None, rng.normal(at, 0.4, depth).astype("f4"))
        for name, at in (("gamma", 1), ("beta", 0))
    ]
    op = Op("LAYER_NORMALIZATION_INT8", "layer", [x, *weights], [y], LayerNormInt8(epsilon))
    definition(op.kind).types(op)
    assert definition(op.kind).infer_shapes(op) == [(rows, depth)]
    centre = rng.integers(-60, 60, (rows, 1))
    values = np.clip(np.rint(rng.normal(centre, spread, (rows, depth))), -128, 127).astype(np.int8)
    values[0] = values[0, 0]  # a row without any spread
    return op, values


LAYERS = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 4),
        "depth": st.sampled_from([1, 2, 3, 16, 32, 63, 64, 200, 1000]),
        "seed": st.integers(0, 9999),
        "scale": st.sampled_from([0.003, 0.05, 0.6]),
        "out_scale": st.sampled_from([0.008, 0.02, 0.1]),
        "zero": st.integers(-128, 127),
        "epsilon": st.sampled_from([1e-5, 1e-3, 0.0]),
        "spread": st.sampled_from([0.7, 5.0, 40.0, 100.0]),
    }
)


@settings(max_examples=150, deadline=None)
@given(LAYERS)
def test_error_of_the_integers(case):
    """The bound that the module's text states, wherever the output is not clamped."""
    op, x = layer(**case)
    real = (x.astype(float) + 7) * op.input(0).scale
    variance = real.var(axis=1, keepdims=True) + case["epsilon"]
    normal = (real - real.mean(axis=1, keepdims=True)) / np.sqrt(np.maximum(variance, 1e-30))
    wanted = (normal * op.input(1).data + op.input(2).data) / op.output.scale
    found = definition(op.kind).reference(op, [x, None, None])[0]
    wanted_stored = np.clip(wanted + case["zero"], -128, 127)
    bound = 0.51 + 2.0**-13 * np.abs(wanted)
    assert (np.abs(found - wanted_stored) <= bound).all()


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
@settings(max_examples=8, deadline=None)
@given(LAYERS)
def test_kernel_is_bit_exact(run_layer, platform, case):
    op, x = layer(**case)
    wanted = definition(op.kind).reference(op, [x, None, None])[0]
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)
    assert np.array_equal(run_layer(platform, op, x, in_place=True)[0], wanted)


def test_gamma_of_another_length():
    op, _ = layer(2, 8, 0)
    op.inputs[1] = Tensor("gamma", (7,), np.dtype(np.float32))
    with pytest.raises(ModelError, match=r"gamma has shape \(7,\), which should be \(8,\)"):
        definition(op.kind).infer_shapes(op)
