"""Accuracy as MLPerf Tiny counts it: area under the curve, preparation of inputs."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from covp.evaluation.data.stored import quantize
from covp.evaluation.data.tasks import TASKS, area_under_curve, top_1
from covp.firmware.mlperf.points import MlperfQuality
from covp.graph.zoo.catalog import CATALOG
from covp.testing.tensors import int8

from .samples import as_input, as_spectrum, pairs_won

SCORED = st.lists(
    st.tuples(st.integers(0, 5) | st.floats(-1e9, 1e9), st.integers(0, 1)), min_size=2
).filter(lambda rows: {label for _, label in rows} == {0, 1})


@given(SCORED)
@example([(1.0, 0), (1.0, 1)])
@example([(2.0, 0), (1.0, 1), (1.0, 1)])
def test_area_under_the_curve_is_the_share_of_pairs(rows: list[tuple[float, int]]) -> None:
    scores, labels = [float(score) for score, _ in rows], [label for _, label in rows]
    assert area_under_curve(scores, labels) == pytest.approx(pairs_won(scores, labels), abs=1e-12)


def test_area_under_the_curve_is_scikit_learns() -> None:
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("scikit-learn is not installed")
    from sklearn.metrics import roc_auc_score  # type: ignore[import-not-found,unused-ignore]

    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 248).tolist()
    scores = np.round(rng.normal(labels, 1.0), 1).tolist()
    assert area_under_curve(scores, labels) == pytest.approx(roc_auc_score(labels, scores))


def test_top_1_and_targets() -> None:
    assert top_1([3.0, 1.0, 0.0, 2.0], [3, 1, 1, 2]) == 0.75
    for value, target, met in ((0.85, 0.85, True), (0.849, 0.85, False), (1.0, None, None)):
        assert MlperfQuality("top-1", value, target, 4, 4, "device", 0.0).meets_target is met
    assert {task.model for task in TASKS.values()} <= CATALOG.keys()
    targets = {name: task.target for name, task in TASKS.items()}
    assert targets == {
        "ic01": 0.85, "ic02": 0.91, "kws01": 0.9, "vww01": 0.8, "ad01": 0.85, "sww01": None
    }  # fmt: skip


@given(
    st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=30),
    st.floats(0.0625, 1.0, width=32),
    st.integers(-128, 127),
)
@example([0.5 * step for step in range(-320, 320)], 1.0, 5)
def test_a_spectrum_is_quantized_value_by_value(
    values: list[float], scale: float, zero_point: int
) -> None:
    given_values = np.array(values, np.float32)
    found = quantize(given_values, int8("x", given_values.shape, scale, zero_point))
    assert np.array_equal(found, as_spectrum(given_values, scale, zero_point)[0])


@pytest.mark.parametrize("name", ["ic01", "kws01", "vww01"])
def test_bytes_become_inputs(name: str) -> None:
    task, content = TASKS[name], bytes(range(256)) * 108
    content = content[: task.sample_bytes]
    wanted = as_input(name, content)
    found = task.input(content, int8("x", wanted.shape, 1.0, -128))
    assert found.dtype == np.int8 and np.array_equal(found, wanted)
