"""ONNX models written in a few lines, executed on cores and compared with an oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import covp
from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference

Array = NDArray[Any]
Make = Callable[..., onnx.ModelProto]


@pytest.fixture
def one_node() -> Make:
    """one_node("Gemm", inputs, outputs=1, constants=(1,), opset=25, **attributes).

    ``inputs`` are arrays, None for one left out; those at the positions ``constants`` are
    initializers. The outputs' types and shapes are inferred.
    """

    def make(
        kind: str,
        inputs: Sequence[Array | None],
        outputs: int | Sequence[str] = 1,
        constants: Sequence[int] = (),
        opset: int = 25,
        **attributes: Any,
    ) -> onnx.ModelProto:
        names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
        wanted = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        node = helper.make_node(kind, names, wanted, name="node", **attributes)
        values = dict(zip(names, inputs, strict=True))
        values.pop("", None)
        fixed = {names[i] for i in constants}
        graph = helper.make_graph(
            [node],
            "g",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
                )
                for name, value in values.items()
                if name not in fixed and value is not None
            ],
            [helper.make_empty_tensor_value_info(name) for name in wanted if name],
            [numpy_helper.from_array(values[name], name) for name in sorted(fixed)],
        )
        imports = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        return onnx.shape_inference.infer_shapes(model)

    return make


class OnCores:
    """Runs ONNX models; sessions are kept open."""

    def __init__(self) -> None:
        self._sessions: dict[str, covp.Session] = {}

    def __call__(
        self,
        model: onnx.ModelProto,
        inputs: Sequence[Array],
        expected: Sequence[Array],
        platforms: Sequence[str] = ("riscv32", "mps2-an386"),
        rtol: float = 1e-5,
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Raises where reference or a core computes something else than ``expected``."""
        graph = read_onnx(model, shapes=shapes)
        self._compare(run_reference(graph, inputs), expected, rtol)
        for platform in platforms:
            session = self._sessions.setdefault(platform, covp.Session(platform))
            module = session.load(covp.compile(graph, platform))
            found = module.run(*inputs)
            self._compare(found if isinstance(found, list) else [found], expected, rtol)
            module.unload()

    def _compare(self, found: Sequence[Array], expected: Sequence[Array], rtol: float) -> None:
        for got, wanted in zip(found, expected, strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            atol = rtol * float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()


@pytest.fixture(scope="module")
def on_cores() -> Iterator[OnCores]:
    """on_cores(model, inputs, expected): the reference and the cores compute ``expected``."""
    runner = OnCores()
    yield runner
    runner.close()
