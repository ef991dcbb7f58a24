"""The onnx package's own tests of one node, and whether covp passes one."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from covp.testing.onnx_backend import Backend

PLATFORMS = ("riscv32", "mps2-an386")


@cache  # the package computes the values of all its operators: seconds
def node_tests() -> dict[str, list[Any]]:
    """Operator to its tests."""
    from onnx.backend.test.loader import load_model_tests

    found: dict[str, list[Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    for test in tests:
        if test.model is not None and len(test.model.graph.node) == 1:
            found.setdefault(test.model.graph.node[0].op_type, []).append(test)
    return found


def passes(test: Any, platform: str) -> None:
    """The outputs on the platform have the expected types, shapes and values."""
    prepared = Backend.prepare(test.model, platform)
    for inputs, outputs in test.data_sets:
        for got, wanted in zip(prepared.run(inputs), outputs, strict=True):
            wanted = np.asarray(wanted)
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), test.name
            np.testing.assert_allclose(
                got, wanted, rtol=test.rtol, atol=test.atol, err_msg=test.name
            )
