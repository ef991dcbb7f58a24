"""Programs are data: a copy in a process that was just started runs like the original."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import covp
from covp.codegen.program import Program
from covp.graph import user_operators
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.models import load_model
from covp.graph.random_inputs import random_inputs

RUN = """
import json, pickle, sys
import numpy as np
import covp
program, inputs = pickle.load(sys.stdin.buffer)
with covp.Session(program.platform) as session:
    output = session.load(program).run(*inputs)
    profile = session.profile()
wanted = program.reference(inputs)[0]
print(json.dumps([output.tolist(), wanted.tolist(), profile.instructions, profile.cycles]))
"""
SQUARED_RELU = Path(__file__).parents[1] / "examples" / "squared_relu.py"


def here(program: Program, inputs: Sequence[Any]) -> list[Any]:
    with covp.Session(program.platform) as session:
        output = session.load(program).run(*inputs)
        profile = session.profile()
    wanted = program.reference(inputs)[0]
    np.testing.assert_array_equal(output, wanted)
    return [output.tolist(), wanted.tolist(), profile.instructions, profile.cycles]


def there(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """In a new process, from pickled bytes."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=pickle.dumps((program, inputs)), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.costly
@pytest.mark.parametrize("accelerators", [[], ["qconv2d:requantize=false"], ["gemm", "cfu"]])
def test_a_copy_runs_elsewhere(accelerators: list[str]) -> None:
    graph = load_model("toycar" if "cfu" not in accelerators else "kws")
    program = covp.compile(graph, "riscv32", accelerators, allow_unused=True)
    inputs = random_inputs(graph.inputs, 0)
    assert there(program, inputs) == here(program, inputs)
    copy = pickle.loads(pickle.dumps(program))
    assert copy.sources == program.sources and copy.layers == program.layers
    assert copy.graph.source == graph.source
    assert here(copy, inputs) == here(program, inputs)


@pytest.fixture
def squared_relu() -> Iterator[None]:
    user_operators.load_operator_file(SQUARED_RELU)
    yield
    user_operators.unregister_operator("SquaredRelu")


@pytest.mark.costly
@pytest.mark.parametrize("accelerators", [[], [f"{SQUARED_RELU}:Lookup"]], ids=["core", "lookup"])
@pytest.mark.usefixtures("squared_relu")
def test_with_operators_and_accelerators_of_a_user_s_file(accelerators: list[str]) -> None:
    def tensor(name: str, scale: float, zero_point: int) -> Tensor:
        scaled = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
        return Tensor(name, (1, 64), np.dtype(np.int8), scaled)

    x, y = tensor("x", 0.05, 3), tensor("y", 0.04, -110)
    graph = Graph("squared", [x], [y], [Op("SquaredRelu", "squared_relu_0", [x], [y])])
    program = covp.compile(graph, "riscv32", accelerators)
    assert [operator.kind for operator in program.operators] == ["SquaredRelu"]
    assert (program.layers[0].target == "lookup") == bool(accelerators)
    inputs = random_inputs(graph.inputs, 0)
    assert there(program, inputs) == here(program, inputs)


def test_a_copy_teaches_its_operators() -> None:
    """Where the module of an operator is imported already, importing it registers nothing."""
    user_operators.load_operator_file(SQUARED_RELU)
    x, y = (Tensor(name, (1, 8), np.dtype(np.float32)) for name in "xy")
    graph = Graph("squared", [x], [y], [Op("SquaredRelu", "squared_relu_0", [x], [y])])
    data = pickle.dumps(covp.compile(graph, "riscv32f"))
    user_operators.unregister_operator("SquaredRelu")
    try:
        program = pickle.loads(data)
        zeros = np.zeros((1, 8), np.float32)
        np.testing.assert_array_equal(program.reference([zeros])[0], zeros)
    finally:
        user_operators.unregister_operator("SquaredRelu")
