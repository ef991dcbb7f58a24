"""Floats at the ends of their range and next to ties, and how results of them are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import covp
from covp.graph.graph import Graph
from covp.graph.reference import run_reference

Array = NDArray[Any]
_TINY, _SUBNORMAL = np.array([1, 0x7FFFFF], np.uint32).view(np.float32)
_LARGEST = np.finfo(np.float32).max
_POSITIVE = np.array(
    [0, _TINY, _SUBNORMAL, np.finfo(np.float32).tiny, 1e-30, 1e-10, 1e-4, 0.25,
     np.nextafter(np.float32(0.5), np.float32(0)), 0.5, 0.9999999, 1, 1.5, 2.5, 3, 5.9999995, 6, 7,
     20, 80, 88.7, 89, 103, 105, 1000, 8388607.5, 8388608, 2**31, 1e10, 1e19, 1e20, 2.9e38, 3.4e38,
     _LARGEST, np.inf],
    np.float32,
)  # fmt: skip
VALUES = np.concatenate([_POSITIVE, -_POSITIVE, np.array([np.nan], np.float32)])
_FEW = np.array(
    [0.0, -0.0, 1, -1, 1.5, -2.5, 0.49999997, _TINY, -_TINY, 1e-30, 3.4e38, -3.4e38, np.inf,
     -np.inf, np.nan, 7, -7, 1e19],
    np.float32,
)  # fmt: skip
LEFT, RIGHT = (part.ravel() for part in np.meshgrid(_FEW, _FEW))
PAIRS = np.stack([LEFT, RIGHT], axis=1)
FLUSHED = 2.0**-126
"""Below it clang's division of cores without floating-point units gives 0."""


def results(graph: Graph, values: list[Array], platform: str) -> list[list[Array]]:
    """The outputs of the reference and of a core."""
    with covp.Session(platform) as session:
        found = session.load(covp.compile(graph, platform)).run(*values)
    return [run_reference(graph, values), found if isinstance(found, list) else [found]]


def assert_equal(found: Array, wanted: Array, what: object = "", atol: float = 0.0) -> None:
    """Each element to 5 digits: NaN is NaN, an infinity itself, zeros of either sign are equal.

    Args:
        found, wanted: what is compared.
        what: for the message.
        atol: what each element may differ by nevertheless.
    """
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=atol, err_msg=str(what))
