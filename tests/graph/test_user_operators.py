"""Operators from outside the tree: read, computed on cores and on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import covp
from covp.cli.main import main
from covp.errors import ModelError, UsageError
from covp.graph import user_operators
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.user_operators import UserOperator, register_operator, unregister_operator
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.tensors import int8, plain

EXAMPLE = Path(__file__).parents[2] / "examples" / "squared_relu.py"


@pytest.fixture
def squared_relu() -> Iterator[None]:
    user_operators.load_operator_file(EXAMPLE)
    yield
    unregister_operator("SquaredRelu")


def graph(dtype: Any, input_scale: float, output_scale: float, zero_points: Any) -> Graph:
    def tensor(name: str, scale: float, zero_point: int) -> Tensor:
        shape = (1, 256)
        return int8(name, shape, scale, zero_point) if dtype == np.int8 else plain(name, shape)

    x, y = tensor("x", input_scale, zero_points[0]), tensor("y", output_scale, zero_points[1])
    return Graph("squared", [x], [y], [Op("SquaredRelu", "squared_relu_0", [x], [y])])


SCALES = [
    (0.05, 0.04, (3, -110)),
    (0.02, 0.02, (0, 0)),
    (0.1, 0.1, (-128, -128)),
    (0.003, 0.002, (17, -5)),
    (0.3, 0.05, (100, -121)),
]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.usefixtures("squared_relu")
def test_the_example_s_reference_is_the_square(scales: Any) -> None:
    """To half a step, and what TFLM's first rounding adds."""
    x = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    (found,) = run_reference(read_tflite(write_tflite(graph(np.int8, *scales)), "squared"), [x])
    source, out, (before, after) = np.float32(scales[0]), np.float32(scales[1]), scales[2]
    real = np.maximum(x.astype(float) - before, 0) ** 2 * float(source) ** 2 / float(out) + after
    assert np.abs(found - np.clip(real, -128, 127)).max() <= 0.5 + 0.02
    assert len(np.unique(found)) > 4


@pytest.mark.process
@pytest.mark.parametrize("accelerators", [[], [f"{EXAMPLE}:Lookup"]], ids=["core", "lookup"])
@pytest.mark.usefixtures("squared_relu")
def test_int8_on_the_core_and_on_its_accelerator(accelerators: list[str]) -> None:
    model = read_tflite(write_tflite(graph(np.int8, *SCALES[0])), "squared")
    x = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    program = covp.compile(model, "riscv32", accelerators)
    assert [layer.target for layer in program.layers] == ["lookup" if accelerators else "cpu"]
    with covp.Session("riscv32") as session:
        module = session.load(program)
        np.testing.assert_array_equal(module.run(x), run_reference(model, [x])[0])


@pytest.mark.process
@pytest.mark.usefixtures("squared_relu")
def test_float_is_composed() -> None:
    data = write_tflite(graph(np.float32, 0, 0, (0, 0)))
    x = np.linspace(-8, 8, 256, dtype=np.float32).reshape(1, 256)
    program = covp.compile(read_tflite(data, "squared"), "riscv32f")
    assert [layer.op for layer in program.layers] == ["RELU", "MUL"]
    with covp.Session("riscv32f") as session:
        out = session.load(program).run(x)
    np.testing.assert_allclose(out, np.maximum(x, 0) ** 2, rtol=1e-6)


def test_without_it_the_model_is_rejected_with_a_way_out() -> None:
    with pytest.raises(ModelError, match=r"SquaredRelu, which is not supported.*user_operators"):
        read_tflite(write_tflite(graph(np.int8, *SCALES[0])), "squared")


@pytest.mark.process
def test_the_command_line_takes_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "squared.tflite"
    user_operators.load_operator_file(EXAMPLE)
    file.write_bytes(write_tflite(graph(np.int8, *SCALES[0])))
    unregister_operator("SquaredRelu")
    with pytest.raises(SystemExit) as done:
        main(["run", str(file), "-p", "riscv32", "--operators", str(EXAMPLE)])
    assert done.value.code == 0, capsys.readouterr().err
    assert "bit-exact: " in capsys.readouterr().out
    unregister_operator("SquaredRelu")


@pytest.mark.process
def test_an_accelerator_s_file_brings_its_operators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accelerator = tmp_path / "squared_unit.py"
    accelerator.write_text(EXAMPLE.read_text())
    file = tmp_path / "squared.tflite"
    file.write_bytes(write_tflite(graph(np.int8, *SCALES[0])))
    with pytest.raises(SystemExit) as done:
        main(["run", str(file), "-p", "riscv32", "-a", str(accelerator)])
    assert done.value.code == 0, capsys.readouterr().err
    assert "lookup received 1 jobs" in capsys.readouterr().out
    unregister_operator("SquaredRelu")


def own(**more: Any) -> UserOperator:
    def square(op: Op, values: Any) -> list[Any]:
        return [values[0] * values[0]]

    return UserOperator("Quadratic", square, **more)


@pytest.fixture
def float_square() -> Iterator[Graph]:
    x, y = (Tensor(name, (3, 5), np.dtype(np.float32)) for name in "xy")
    yield Graph("square", [x], [y], [Op("Quadratic", "square_0", [x], [y])])
    unregister_operator("Quadratic")


@pytest.mark.process
def test_own_c(float_square: Graph) -> None:
    def body(op: Op) -> str:
        return f"for (int i = 0; i < {op.output.size}; i++)\n    output[i] = square(input[i]);"

    register_operator(own(body=body, definitions=lambda op: (
        "static float square(float x) { return x * x; }")))  # fmt: skip
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    with covp.Session("cortex-m7") as session:
        module = session.load(covp.compile(float_square, "cortex-m7"))
        np.testing.assert_array_equal(module.run(x), x * x)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "neither compose"),
        ({"body": lambda op: 7}, "must return C text"),
        ({"body": lambda op: 1 // 0}, "ZeroDivisionError"),
        ({"compose": lambda op: 1 // 0}, "ZeroDivisionError"),
        ({"compose": lambda op: []}, "leaves its output unwritten"),
    ],
)
def test_mistakes_name_the_operator(float_square: Graph, more: Any, message: str) -> None:
    register_operator(own(**more))
    with pytest.raises(ModelError, match=rf"square_0: .*Quadratic.*{message}"):
        covp.compile(float_square, "riscv32f")


def test_files_that_register_nothing(tmp_path: Path) -> None:
    file = tmp_path / "nothing.py"
    file.write_text("x = 1\n")
    with pytest.raises(UsageError, match="registers nothing new"):
        user_operators.load_operator_file(file)
    file.write_text("1 / 0\n")
    with pytest.raises(ModelError, match="ZeroDivisionError"):
        user_operators.load_operator_file(file)
    with pytest.raises(UsageError, match="no such file"):
        user_operators.load_operator_file(tmp_path / "none.py")
    with pytest.raises(UsageError, match="covp has one of its own"):
        register_operator(UserOperator("ADD", lambda op, values: []))
