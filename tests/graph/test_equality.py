"""The rule of equality, and the seeded inputs that figures are measured on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from covp.graph.equality import FLOAT_TOLERANCE, differences
from covp.graph.graph import Tensor
from covp.graph.random_inputs import random_inputs

INTEGERS = npst.arrays(np.int8, st.tuples(st.integers(1, 4), st.integers(0, 4)))
FINITE = st.floats(-1000, 1000, width=32)


@given(INTEGERS, st.data())
def test_integers_are_equal_to_the_bit(wanted: np.ndarray, data: st.DataObject) -> None:
    got = wanted.copy()
    changed = data.draw(st.sets(st.integers(0, wanted.size - 1)) if wanted.size else st.just(set()))
    for index in changed:
        got.reshape(-1)[index] ^= 1
    assert differences(got, wanted).tolist() == sorted(changed)


@given(npst.arrays(np.float32, 5, elements=FINITE), st.integers(0, 4), st.sampled_from([-1, 1]))
def test_floats_may_differ_by_a_share_of_the_largest(
    wanted: np.ndarray, index: int, sign: int
) -> None:
    largest = max(float(np.abs(wanted).max()), 1e-3)
    wanted[(index + 1) % 5] = largest
    near, far = wanted.astype(np.float64), wanted.astype(np.float64)
    near[index] += sign * 0.5 * FLOAT_TOLERANCE * largest
    far[index] += sign * 2 * FLOAT_TOLERANCE * largest
    assert differences(near, wanted.astype(np.float64)).size == 0
    assert differences(far, wanted.astype(np.float64)).tolist() == [index]


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_an_infinity_or_nan_excuses_nothing_else(special: float) -> None:
    wanted = np.array([special, 1.0, 2.0], np.float32)
    assert differences(wanted.copy(), wanted).size == 0
    assert differences(np.array([special, 1.0, 3.0], np.float32), wanted).tolist() == [2]
    assert differences(np.array([0.0, 1.0, 2.0], np.float32), wanted).tolist() == [0]
    assert differences(wanted, np.array([0.0, 1.0, 2.0], np.float32)).tolist() == [0]


def test_another_shape_or_type_is_wrong_everywhere() -> None:
    wanted = np.zeros((2, 3), np.int8)
    assert differences(np.zeros((3, 2), np.int8), wanted).size == 6
    assert differences(np.zeros((2, 3), np.int32), wanted).size == 6
    assert differences(np.zeros(0, np.int8), np.zeros(0, np.int32)).size == 1


def test_the_inputs_of_a_seed_stay_what_they_are() -> None:
    """Published figures of operators whose cost depends on the data were measured on these."""
    tensors = [
        Tensor("a", (1, 4), np.dtype(np.int8)),
        Tensor("b", (2,), np.dtype(np.int32)),
        Tensor("c", (2,), np.dtype(np.float32)),
    ]
    first, second, third = random_inputs(tensors, 0)
    rng = np.random.default_rng(0)
    assert first.tolist() == rng.integers(-128, 128, (1, 4), np.int8).tolist()
    assert second.tolist() == rng.integers(-(2**31), 2**31, 2, np.int32).tolist()
    assert third.tolist() == rng.standard_normal(2).astype(np.float32).tolist()
