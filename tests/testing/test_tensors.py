"""Strategies of quantizations, shapes, tensors and values keep to what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.graph.graph import Quantization
from covp.testing import quantizations, tensors

DTYPES = ["int8", "uint8", "int16", "int32", "float32"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@given(data=st.data())
def test_per_tensor(dtype: str, data: st.DataObject) -> None:
    quantization: Quantization = data.draw(quantizations.per_tensor(dtype))
    assert quantization.scale.shape == quantization.zero_point.shape == (1,)
    assert quantization.scale.dtype == np.float32 and quantization.scale[0] > 0
    limits = np.iinfo(dtype)
    assert limits.min <= quantization.zero_point[0] <= limits.max
    assert not quantization.per_channel


@given(st.integers(2, 9), st.sampled_from([0, 3]), st.data())
def test_per_channel(channels: int, axis: int, data: st.DataObject) -> None:
    quantization = data.draw(quantizations.per_channel(channels, axis))
    assert quantization.scale.shape == quantization.zero_point.shape == (channels,)
    assert (quantization.scale > 0).all() and not quantization.zero_point.any()
    assert quantization.axis == axis and quantization.per_channel


def test_given_strategies_take_the_place_of_the_defaults() -> None:
    chosen = quantizations.per_tensor(scale=st.just(0.5), zero_point=st.just(7))

    @given(tensors.tensors("int16", shape=st.just((2, 3)), quantization=chosen, name="t"))
    def drawn(tensor: Any) -> None:
        assert (tensor.name, tensor.shape, tensor.dtype) == ("t", (2, 3), np.int16)
        assert (tensor.scale, tensor.zero_point) == (0.5, 7)

    drawn()


@given(tensors.shapes(min_rank=2, max_rank=3, max_extent=4))
def test_shapes(shape: tuple[int, ...]) -> None:
    assert 2 <= len(shape) <= 3 and all(1 <= extent <= 4 for extent in shape)


@given(tensors.broadcast_shapes())
def test_broadcast_shapes(both: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert np.broadcast_shapes(*both) in both


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_values_fit_their_tensor(dtype: str, data: st.DataObject) -> None:
    tensor = data.draw(tensors.tensors(dtype))
    assert (tensor.quantization is None) == (dtype in ("int32", "float32"))
    values = data.draw(tensors.values(tensor))
    assert values.shape == tensor.shape and values.dtype == tensor.dtype


@pytest.mark.parametrize(("dtype", "low", "high"), [("int8", -128, 127), ("float32", -4, 4)])
def test_contents(dtype: str, low: int, high: int) -> None:
    tensor = tensors.plain("x", (200,), dtype)
    assert (tensors.filled(tensor, 0, "lowest") == low).all()
    assert (tensors.filled(tensor, 0, "highest") == high).all()
    assert set(np.unique(tensors.filled(tensor, 0, "extreme"))) == {low, high}
    random = tensors.filled(tensor, 0)
    assert len(np.unique(random)) > 80 and random.min() >= low and random.max() <= high


def test_int8_with_a_scale_for_each_channel() -> None:
    data = np.ones((1, 2, 2, 3), np.int8)
    tensor = tensors.int8("w", data.shape, [0.1, 0.2, 0.3], 0, data, axis=3)
    assert tensor.quantization is not None and tensor.quantization.axis == 3
    assert tensor.quantization.zero_point.tolist() == [0, 0, 0] and tensor.constant
