"""Comparison with the oracle, LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope="session")
def holds(litert: Callable[..., Any]) -> Callable[..., None]:
    """A function: written and read again, the graph computes what LiteRT computes."""
    from covp.graph.reference import run_reference
    from covp.graph.tflite import read_tflite
    from covp.graph.zoo.tflite_writer import write_tflite

    def check(graph: Any, seed: int, tolerance: float = 0) -> None:
        rng = np.random.default_rng(seed)
        inputs: list[NDArray[Any]] = [
            rng.integers(np.iinfo(t.dtype).min, np.iinfo(t.dtype).max + 1, t.shape).astype(t.dtype)
            if t.dtype in (np.int8, np.int16)
            else rng.uniform(-8, 8, t.shape).astype(np.float32)
            for t in graph.inputs
        ]
        data = write_tflite(graph)
        wanted = litert(data, inputs)
        found = run_reference(read_tflite(data, graph.name), inputs)
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            if theirs.dtype == np.float32:
                scale = max(1.0, float(np.abs(theirs).max(initial=0)))
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * scale)
            else:
                difference = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
                assert difference.max(initial=0) <= tolerance

    return check
