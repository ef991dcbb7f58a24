"""Calls of the command line inside this process, and a model that compiles in a moment."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.cli.main import main
from covp.graph.attributes import Conv2D, FullyConnected, Padding, Softmax
from covp.graph.graph import Graph
from covp.graph.reference import run_all
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite


@dataclass(frozen=True)
class Outcome:
    """What a call left behind."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON; fails when anything else is there too."""
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """The one line of a refused call, which leaves nothing on standard output."""
        assert self.status in (1, 2), (self.status, self.out, self.err)
        assert self.out == ""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("covp: ")
        assert "Traceback" not in self.err and "internal error" not in self.err
        return self.err.strip()


Call = Callable[..., Outcome]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """``call("run", "kws", "-p", "riscv32")`` as the shell would, without the process."""

    def invoke(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Outcome(stopped.value.code, captured.out, captured.err)

    return invoke


def small_model(name: str = "small", features: int = 4) -> bytes:
    """A convolution of 6x6x2, a fully connected layer and (where it can) SOFTMAX, int8."""
    rng = np.random.default_rng(5)
    builder = GraphBuilder(name)
    x = builder.input((1, 6, 6, 2), scale=0.05, zero_point=-3)
    filters = rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    weights = builder.constant(filters, [0.01, 0.02, 0.03, 0.04])
    bias = builder.constant(np.arange(4, dtype=np.int32), [0.0005, 0.001, 0.0015, 0.002])
    attributes = Conv2D((1, 1), Padding(), activation="relu")
    conv = builder.add("CONV_2D", x, weights, bias, attributes=attributes, scale=0.1)
    flat = builder.add("RESHAPE", conv, shape=(1, 64))
    matrix = builder.constant(rng.integers(-127, 128, (features, 64)).astype(np.int8), 0.01)
    dense = builder.add(
        "FULLY_CONNECTED", flat, matrix, attributes=FullyConnected(), scale=0.2, zero_point=1
    )
    if features > 4095:  # too wide for SOFTMAX of int8
        return write_tflite(builder.graph(dense))
    soft = builder.add("SOFTMAX", dense, attributes=Softmax(), scale=1 / 256, zero_point=-128)
    return write_tflite(builder.graph(soft))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a small int8 model."""
    path = tmp_path_factory.mktemp("models") / "small.tflite"
    path.write_bytes(small_model())
    return path


def wrong_outputs(
    graph: Graph, inputs: Sequence[NDArray[Any]], states: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """As `run_all`, with other outputs."""
    outputs = {tensor.name: np.full(tensor.shape, 77, tensor.dtype) for tensor in graph.outputs}
    return run_all(graph, inputs, states) | outputs
