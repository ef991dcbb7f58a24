"""--shape and ``shapes=``: inputs whose shape an ONNX file leaves open."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import covp
from covp.cli.main import main
from covp.errors import UsageError


@pytest.fixture
def model(tmp_path):
    """y = relu(x @ w), of any number of rows."""
    weights = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    path = tmp_path / "rows.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return str(path)


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    found = capsys.readouterr()
    return done.value.code, found.out, found.err


@pytest.mark.costly
def test_commands_take_it(model, tmp_path, capsys):
    status, out, err = call(capsys, "run", model, "-p", "riscv32", "--shape", "x=5,3", "--json")
    assert status == 0, err
    assert json.loads(out)["outputs"][0]["shape"] == [5, 4]
    both = ("-p", "riscv32", "-p", "mps2-an386", "--json")
    status, out, err = call(capsys, "compare", model, *both, "--shape", "x=2,3")
    assert status == 0, err
    assert [row["run"]["outputs"][0]["shape"] for row in json.loads(out)["rows"]] == [[2, 4]] * 2
    folder = tmp_path / "firmware"
    status, _, err = call(
        capsys, "export", model, "-p", "riscv32", "--shape", "x=1,3", "-o", str(folder)
    )
    assert status == 0, err
    assert folder.is_dir()


def test_python_takes_it(model):
    assert covp.load_model(model, shapes={"x": (7, 3)}).outputs[0].shape == (7, 4)
    program = covp.compile(model, "riscv32", shapes={"x": (7, 3)})
    assert program.outputs[0].shape == (7, 4)
    with pytest.raises(UsageError, match="are known"):
        covp.compile(program.graph, "riscv32", shapes={"x": (7, 3)})


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ((), 1, "input x has a dynamic shape (rows,3); fix it with --shape x=1,3"),
        (("x=2,4",), 1, "cannot be given the shape (2, 4)"),
        (("z=2,3",), 1, "there is no input z"),
        (("x",), 2, "not of the form NAME=1,3,32,32"),
        (("x=2,-3",), 2, "not of the form NAME=1,3,32,32"),
        (("x=2,3", "x=4,3"), 2, "the shape of x is given twice"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(model, given, status, said, capsys):
    options = [word for shape in given for word in ("--shape", shape)]
    code, _, err = call(capsys, "run", model, "-p", "riscv32", *options)
    assert code == status
    assert said in err and len(err.strip().splitlines()) <= (1 if status == 1 else 4)


def test_a_tflite_file_states_its_own(capsys):
    code, _, err = call(capsys, "run", "kws", "-p", "riscv32", "--shape", "x=1")
    assert code == 2 and "states the shapes of its inputs" in err
