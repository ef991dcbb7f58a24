"""Moves and windows of ONNX: the onnx package's own tests, executed on emulated cores."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx.backend.test.loader import load_model_tests

from covp.testing.onnx_backend import Backend

OPERATORS = (
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Pad", "Reshape", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    *("Conv", "ConvTranspose", "AveragePool", "MaxPool", "LpPool", "MaxUnpool"),
    *("GlobalAveragePool", "GlobalMaxPool", "Resize"),
)
PLATFORMS = ("riscv32", "mps2-an386")
SMALL = 50_000
"""Elements of the inputs of a test that runs everywhere."""


@functools.cache
def cases():
    """The tests of one node, by its operator."""
    found = {}
    for case in load_model_tests(kind="node"):
        if case.model is not None and len(case.model.graph.node) == 1:
            found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


def passes(case, platform):
    prepared = Backend.prepare(case.model, platform)
    for inputs, outputs in case.data_sets:
        results = prepared.run(inputs)
        assert len(results) == len(outputs)
        for got, wanted in zip(results, outputs, strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), case.name
            np.testing.assert_allclose(
                got, wanted, rtol=case.rtol, atol=case.atol, err_msg=case.name
            )


@pytest.mark.parametrize("operator", OPERATORS)
def test_some_of_the_tests_of(operator):
    """Every third, on the two platforms in turns."""
    for number, case in enumerate(cases()[operator][::3]):
        if sum(value.size for value in case.data_sets[0][0]) < SMALL:
            passes(case, PLATFORMS[number % 2])


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_of_the_tests_of(operator, platform):
    assert cases()[operator]
    for case in cases()[operator]:
        passes(case, platform)
