"""CIRCULAR_BUFFER beside a concatenation that is cut, with memory of its own and in place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.ops import definition
from covp.graph.ops.circular_buffer import CircularBuffer
from covp.testing.tensors import plain


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@settings(deadline=None, max_examples=10)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    dtype=st.sampled_from(["int8", "int16", "float32"]),
    in_place=st.booleans(),
    data=st.data(),
)
def test_new_rows_push_old_ones_out(run_layer, platform, shape, dtype, in_place, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    new_shape = [*shape]
    new_shape[axis] = data.draw(st.integers(1, shape[axis]))
    rng = np.random.default_rng(1)
    old, new = (rng.integers(-99, 99, s).astype(dtype) for s in (shape, new_shape))
    tensors = [plain(n, tuple(s), dtype) for n, s in (("b", shape), ("x", new_shape), ("y", shape))]
    op = Op("CIRCULAR_BUFFER", "ring", [*tensors[:2]], tensors[2:], CircularBuffer(axis))
    joined = np.concatenate([old, new], axis)
    wanted = np.take(joined, range(new_shape[axis], joined.shape[axis]), axis)
    assert np.array_equal(definition(op.kind).reference(op, [old, new])[0], wanted)
    assert np.array_equal(run_layer(platform, op, old, new, in_place=in_place)[0], wanted)


def test_rows_that_do_not_fit_are_an_error():
    tensors = [plain("b", (1, 2, 3)), plain("x", (1, 3, 3)), plain("y", (1, 2, 3))]
    op = Op("CIRCULAR_BUFFER", "ring", [*tensors[:2]], tensors[2:], CircularBuffer(1))
    with pytest.raises(ModelError, match="do not fit a buffer"):
        definition(op.kind).infer_shapes(op)
