"""`covp verify` beside a data cache: a driver that lacks a call is found, right ones pass."""

from __future__ import annotations

import pytest

from covp.accelerator.registry import find_backend
from covp.testing.verify import verify
from tests.accelerator.test_data_cache import MISSING, Without

pytestmark = pytest.mark.usefixtures("counted_time")


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("spec", ["qconv2d", "vector"])
def test_a_driver_without_a_call_is_found(spec: str, missing: str) -> None:
    backend = Without(find_backend(spec), MISSING[missing]).backend
    verdict = verify(backend, "disco-f746ng", models=(), seconds=3, examples=16)
    assert verdict.failure is not None and "differ from the reference" in verdict.failure


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["qconv2d", "vector", "gemm", "dma", "vanilla"])
def test_right_drivers_pass(spec: str) -> None:
    verdict = verify(spec, "disco-f746ng", models=(), seconds=3, examples=16)
    assert verdict.failure is None, verdict.test
