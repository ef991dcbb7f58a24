"""The onnx package's own tests of single operators through its runner, on emulated cores."""

from __future__ import annotations

import importlib.util
import unittest
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from covp.testing.onnx_backend import Backend

ROOT = Path(__file__).parents[3]
SAMPLE = [
    "add_bcast",
    "relu",
    "reshape_negative_dim",
    "flatten_axis1",
    "transpose_all_permutations_3",
    "quantizelinear_axis",
    "dequantizelinear_blocked",
    "dynamicquantizelinear",
    "qlinearconv",
    "qlinearmatmul_3D_uint8_float32",
    "convinteger_with_padding",
]


@cache
def benchmark() -> ModuleType:
    """benchmarks/onnx_nodes.py."""
    path = ROOT / "benchmarks" / "onnx_nodes.py"
    if not path.is_file():
        pytest.skip("not in a checkout", allow_module_level=True)
    spec = importlib.util.spec_from_file_location("onnx_nodes", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class OnPlatform(Backend):
    """covp on the platform that a test sets."""


@cache
def cases() -> type[unittest.TestCase]:
    """All node tests of the onnx package, with covp as the backend."""
    from onnx.backend.test import BackendTest

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = BackendTest(OnPlatform, __name__).test_cases
    suite: type[unittest.TestCase] = found["OnnxBackendNodeModelTest"]
    return suite


def execute(name: str) -> None:
    """Raises where the test fails."""
    getattr(cases(), f"{name}_cpu")(unittest.TestCase())


@pytest.fixture(params=["riscv32", "mps2-an386"])
def _platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnPlatform, "cpu", request.param)


@pytest.mark.slow
@pytest.mark.usefixtures("_platform")
@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str) -> None:
    execute(f"test_{name}")


def test_the_set_is_what_other_tools_are_counted_on() -> None:
    tests = benchmark().node_tests()
    assert len(tests) == 480
    assert {benchmark().operator_of(test) for test in tests.values()} == benchmark().OPERATORS


@pytest.mark.slow
@pytest.mark.usefixtures("_platform")
@pytest.mark.parametrize("operator", sorted(benchmark().OPERATORS))
def test_operator(operator: str) -> None:
    tests = benchmark().node_tests()
    failed = {}
    for name in (n for n, test in tests.items() if benchmark().operator_of(test) == operator):
        try:
            execute(name)
        except Exception as error:
            failed[name] = str(error).strip()[:200]
    assert not failed
