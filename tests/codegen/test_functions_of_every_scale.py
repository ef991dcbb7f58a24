"""Kernels of functions in fixed point against the reference, with input scales of every size; the
reference is held against real numbers in tests/graph/test_real_numbers.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.graph.reference import run_reference
from tests.functions import FUNCTIONS, Function

EXPONENTS = (-40, -27, -25, -17, -12, -8, -4, -1, 0, 1, 2, 9, 20)


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_kernel_equals_reference(run_layer: Any, platform: str, function: Function) -> None:
    x = function.values()
    for exponent in EXPONENTS:
        scale = float(np.float32(1.37 * 2.0**exponent))
        if function.rejects(scale):
            continue
        graph = function.graph(scale, 0 if function.dtype == "int16" else -5)
        found = run_layer(platform, graph.ops[0], x)[0]
        np.testing.assert_array_equal(found, run_reference(graph, [x])[0], f"scale {scale}")
