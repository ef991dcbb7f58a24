"""Layers of a single element, row, column or channel are tried with every seed, first of all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.accelerator.registry import find_backend
from covp.testing import ConcatenationCase, ConvCase, ElementwiseCase, PoolCase, SoftmaxCase
from covp.testing.verify import verify as verify_in_full
from covp.testing.verify.chain import ChainCase
from covp.testing.verify.extents import single_elements
from tests.testing.verify.units import Dense

pytestmark = pytest.mark.usefixtures("counted_time")

verify = partial(verify_in_full, models=(), examples=40, seconds=0.1)

WRONG: dict[str, Callable[[Any], bool]] = {
    "one element": lambda job: job.INPUT.size == 1 and job.OUT_CHANNELS == 1,
    "one input": lambda job: job.INPUT.size == 1,
    "one output": lambda job: job.BATCH * job.OUT_CHANNELS == 1 and job.IN_CHANNELS > 1,
    "one element an image": lambda job: job.BATCH > 1 and job.IN_CHANNELS == job.OUT_CHANNELS == 1,
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wrong", WRONG)
def test_single_elements_of_a_layer_with_weights(wrong: str, seed: int) -> None:
    class Broken(Dense):
        """One more where there is a single element."""

        def compute(self, job: Any) -> NDArray[Any]:
            right = super().compute(job)
            return right ^ np.int8(1) if WRONG[wrong](job) else right

    assert verify(Broken(), seed=seed).failure is not None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("operation", range(5))  # of a softmax one element is always the same
def test_a_single_element_of_each_operation(operation: int, seed: int) -> None:
    vector: Any = type(find_backend("vector"))

    class Broken(vector):  # type: ignore[misc]
        """Its address counter ends at once for one element."""

        def compute(self, job: Any) -> NDArray[Any]:
            right = np.asarray(super().compute(job))
            return right ^ np.int8(1) if operation == job.OPERATION and right.size == 1 else right

    assert verify(Broken(), seed=seed).failure is not None


def test_a_single_pixel_behind_a_convolution(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "planted" / "fused.py").read_text(encoding="utf-8")
    wrong = "        if inner.size == 1:\n            inner = inner ^ 1\n        out = np.empty("
    file = tmp_path / "fused.py"
    file.write_text(text.replace("        out = np.empty(", wrong, 1), encoding="utf-8")
    assert verify(str(file)).failure is not None


@pytest.mark.parametrize(
    "case",
    [
        ConvCase(size=(5, 4), channels=(3, 2), kernel=(3, 3), padding=(1, 0, 0, 1)),
        ElementwiseCase(shape=(2, 3, 4), other=(2, 1, 4)),
        PoolCase(size=(5, 4), channels=3, filter=(2, 2), stride=(2, 2)),
        SoftmaxCase(3, 7),
        ConcatenationCase((2, 3), (2, 2), 1),
        ChainCase(
            (
                ConvCase(size=(4, 6), channels=(2, 3), kernel=(3, 3), same=True),
                PoolCase("MAX_POOL_2D", (4, 6), 3, (2, 2), (2, 2)),
            ),
            ((1, 0, 0),),
        ),
    ],
    ids=lambda case: type(case).__name__,
)
def test_the_first_layers_have_one_element(case: Any) -> None:
    found = list(single_elements(case))
    for each in found[:4]:
        assert all(tensor.size == 1 for tensor in each.graph().inputs)
    assert len({repr(each.inputs()) for each in found[:4]}) > 1
    assert len(found) > 5
