"""Moves and windows of ONNX: the onnx package's own tests, executed on emulated cores."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from covp.errors import ModelError
from covp.graph.onnx import read_onnx

from .node_tests import PLATFORMS, node_tests, passes

OPERATORS = (
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Pad", "Reshape", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    *("Conv", "ConvTranspose", "AveragePool", "MaxPool", "LpPool", "MaxUnpool"),
    *("GlobalAveragePool", "GlobalMaxPool", "Resize"),
)
SMALL = 50_000
"""Elements of the inputs of a test that runs everywhere."""


@pytest.mark.costly
@pytest.mark.parametrize("operator", OPERATORS)
def test_some_of_the_tests_of(operator):
    """Every third, on the two platforms in turns."""
    for number, case in enumerate(node_tests()[operator][::3]):
        if sum(value.size for value in case.data_sets[0][0]) < SMALL:
            passes(case, PLATFORMS[number % 2])


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_of_the_tests_of(operator, platform):
    assert node_tests()[operator]
    for case in node_tests()[operator]:
        passes(case, platform)


WRONG = [
    ("MaxPool", {"kernel_shape": [3]}, {}, "kernel_shape .* does not fit the image"),
    ("MaxPool", {"kernel_shape": [9, 9]}, {}, "leaves nothing"),
    ("AveragePool", {"kernel_shape": [1 << 20, 1]}, {}, "does not fit 2 axes"),
    ("ReverseSequence", {"time_axis": 7}, {"lengths": np.array([1])}, "axis 7 is outside"),
    ("Tile", {}, {"repeats": np.array([1, 1, -2, 1])}, "do not fit"),
    ("Resize", {}, {"roi": None, "scales": np.array([1, 1, 0, 1], np.float32)}, "leave nothing"),
    (
        "Slice",
        {},
        {"starts": np.array([0]), "ends": np.array([1]), "axes": np.array([9])},
        "axis 9",
    ),
    ("Pad", {"mode": "mirror"}, {"pads": np.array([0] * 8)}, "mode mirror is not supported"),
    ("Conv", {}, {"w": np.zeros((2, 5, 3, 3), np.float32)}, "do not fit the image"),
    ("Gather", {"axis": 4}, {"at": np.array([0])}, "axis 4 is outside"),
]


@pytest.mark.parametrize(("kind", "attributes", "constants", "reason"), WRONG)
def test_what_does_not_fit_is_rejected_with_the_reason(kind, attributes, constants, reason):
    names = ["x", *(name if value is not None else "" for name, value in constants.items())]
    values = [
        onnx.numpy_helper.from_array(np.asarray(value), name)
        for name, value in constants.items()
        if value is not None
    ]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 4, 5])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node(kind, names, ["y"], **attributes)
    graph = onnx.helper.make_graph([node], "g", [x], [y], values)
    opset = [onnx.helper.make_opsetid("", 19)]
    with pytest.raises(ModelError, match=reason):
        read_onnx(onnx.helper.make_model(graph, opset_imports=opset))
