"""Averages that are rounded in another way are found at every window, alone and behind others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.accelerator.registry import find_backend
from covp.graph.reference import run_reference
from covp.testing import ConvCase, PoolCase
from covp.testing.requantization import ties_of
from covp.testing.verify import verify as verify_in_full
from covp.testing.verify.averages import averages, averages_in
from covp.testing.verify.chain import ChainCase

pytestmark = pytest.mark.usefixtures("counted_time")

FUSED = Path(__file__).parent / "planted" / "fused.py"
ROUNDED = "value = np.sign(value) * (np.abs(value) // count)"
WRONG = {
    "4x4: down at negative ties": "(count == 16) & (total < 0) & (-total % 16 == 8)",
    "4x4: one less below zero": "(count == 16) & (total < 0)",
    "8x8: up at ties": "-((count == 64) & (total > 0) & (total % 64 == 32))",
    "3x3: below a tie": "-((count == 9) & (total > 0) & (total % 9 == 4))",
    "5x2: down at negative ties": "(window.shape[:2] == (5, 2)) & (total < 0) & (-total % 10 == 5)",
    "7x7: above a tie": "(count == 49) & (total < 0) & (-total % 49 == 25)",
}
verify = partial(verify_in_full, models=(), examples=60, seconds=20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("wrong", WRONG)
def test_averages_behind_a_convolution(wrong: str, seed: int, tmp_path: Path) -> None:
    text = FUSED.read_text(encoding="utf-8")
    assert ROUNDED in text
    file = tmp_path / "fused.py"
    file.write_text(text.replace(ROUNDED, f"{ROUNDED} - ({WRONG[wrong]})"), encoding="utf-8")
    verdict = verify(str(file), seed=seed)
    assert verdict.failure is not None and "AVERAGE_POOL_2D" in verdict.test


@pytest.mark.costly
@pytest.mark.parametrize("window", [(4, 4), (1, 6), (3, 3), (16, 16), (1, 300)])
@pytest.mark.parametrize("sign", [1, -1])
def test_averages_alone(window: tuple[int, int], sign: int) -> None:
    vector: Any = type(find_backend("vector"))
    count = window[0] * window[1]

    class Wrong(vector):  # type: ignore[misc]
        """Toward zero at ties of one window and sign; of odd ones at the average beside it."""

        def compute(self, job: Any) -> NDArray[Any]:
            right = super().compute(job)
            if job.OPERATION != 3 or window != (job.FILTER_HEIGHT, job.FILTER_WIDTH):
                return np.asarray(right)
            image = job.FIRST.reshape(job.ROWS, job.COLUMNS, job.CHANNELS).astype(np.int64)
            image = image[: job.OUT_HEIGHT * window[0], : job.OUT_WIDTH * window[1]]
            if image.size != job.OUT_HEIGHT * job.OUT_WIDTH * count * job.CHANNELS:
                return np.asarray(right)
            rows = image.reshape(job.OUT_HEIGHT, window[0], job.OUT_WIDTH, window[1], -1)
            total = rows.sum(axis=(1, 3)) * sign
            tie = (total > 0) & (total % count == (count + 1) // 2)
            return np.asarray(right - sign * tie, np.int8)

    assert verify(Wrong()).failure is not None


@pytest.mark.costly
def test_all_windows_have_ties_of_both_signs() -> None:
    """Of an odd number of elements the averages beside a tie, from above and below."""
    for case in averages([4095]):
        if not case.same and case.filter != (1, 1):
            assert len(ties_of(case.inputs()[0], case.filter)) == kinds(case.filter)
    for activation in ("none", "relu"):
        conv = ConvCase(size=(6, 6), channels=(3, 4), kernel=(3, 3), same=True,
                        activation=activation, zero_points=(3, -5))  # fmt: skip
        pool = PoolCase(size=(6, 6), channels=4, filter=(2, 2), stride=(2, 2))
        found: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for chain in averages_in(ChainCase((conv, pool), ((1, 0, 0),)), 1):
            graph = chain.graph()
            graph.outputs, ops = [graph.ops[0].output], graph.ops
            graph.ops = ops[:1]
            (read,) = run_reference(graph, chain.inputs())
            window = ops[1].attributes.filter
            found.setdefault(window, set()).update(ties_of(read, window))
        assert {window: len(ties) for window, ties in found.items()} == {
            window: kinds(window) or len(found[window]) for window in found
        }
        assert (4, 4) in found and (16, 16) in found and (1, 8) in found


def kinds(window: tuple[int, int]) -> int:
    count = window[0] * window[1]
    return 0 if count == 1 else 2 if count % 2 == 0 else 4
