"""ONNX networks that remember: inputs bound to outputs, and streams; beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.cli.main import main

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

Array = NDArray[Any]
FEATURES, HIDDEN = 3, 5


def constant(name: str, *shape: int) -> Any:
    rng = np.random.default_rng(len(name) + sum(shape))
    return numpy_helper.from_array(rng.normal(0, 0.5, shape).astype(np.float32), name)


def integers(name: str, *values: int) -> Any:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def save(
    path: Path, nodes: list[Any], shapes: dict[str, list[int]], outputs: list[str], data: list[Any]
) -> Path:
    """A model; its outputs have the shapes of that name."""
    infos = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()}
    inputs = [info for name, info in infos.items() if name not in outputs]
    graph = helper.make_graph(nodes, "net", inputs, [infos[name] for name in outputs], data)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def recurrent(folder: Path) -> Path:
    """A GRU cell on one row, its state as input and output, and a dense layer."""
    gates = constant("w", 1, 3 * HIDDEN, FEATURES), constant("r", 1, 3 * HIDDEN, HIDDEN)
    return save(
        folder / "gru.onnx",
        [
            helper.make_node("GRU", ["x", "w", "r", "b", "", "h0"], ["", "hn"], hidden_size=HIDDEN),
            helper.make_node("Reshape", ["hn", "flat"], ["f"]),
            helper.make_node("Gemm", ["f", "d"], ["y"], transB=1),
        ],
        {"x": [1, 1, FEATURES], "h0": [1, 1, HIDDEN], "y": [1, 2], "hn": [1, 1, HIDDEN]},
        ["y", "hn"],
        [*gates, constant("b", 1, 6 * HIDDEN), constant("d", 2, HIDDEN), integers("flat", 1, -1)],
    )


@pytest.mark.parametrize("platform", ["riscv32f", "cortex-m7"])
def test_a_gru_keeps_its_state(platform: str, tmp_path: Path) -> None:
    path = recurrent(tmp_path)
    oracle = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    program = covp.compile(path, platform, states={"h0": "hn"})
    assert [tensor.name for tensor in program.inputs] == ["x"] and len(program.outputs) == 1
    rng, h = np.random.default_rng(2), np.zeros((1, 1, HIDDEN), np.float32)
    with covp.Session(platform) as session:
        network = session.load(program)
        for _ in range(6):
            x = rng.normal(0, 1, (1, 1, FEATURES)).astype(np.float32)
            y, h = oracle.run(["y", "hn"], {"x": x, "h0": h})
            assert np.allclose(network.run(x), y, atol=1e-5)
        assert np.allclose(network.states()["h0"], h, atol=1e-5)


def convolutional(folder: Path) -> Path:
    """Two 1-D convolutions, a dilation, a residual, pools: channels first, time last."""
    conv: dict[str, Any] = {"kernel_shape": [3]}
    return save(
        folder / "tcn.onnx",
        [
            helper.make_node("Conv", ["x", "w0", "b0"], ["a"], **conv),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Conv", ["b", "w1"], ["c"], dilations=[2], **conv),
            helper.make_node("Slice", ["b", "begin", "end", "axis"], ["cropped"]),
            helper.make_node("Add", ["c", "cropped"], ["d"]),
            helper.make_node("MaxPool", ["d"], ["e"], kernel_shape=[2]),
            helper.make_node("GlobalAveragePool", ["e"], ["f"]),
            helper.make_node("Flatten", ["f"], ["g"]),
            helper.make_node("Gemm", ["g", "w2"], ["y"], transB=1),
        ],
        {"x": [1, 4, 20], "y": [1, 3]},
        ["y"],
        [
            *(constant("w0", 6, 4, 3), constant("b0", 6), constant("w1", 6, 6, 3)),
            *(constant("w2", 3, 6), integers("begin", 4), integers("end", 99), integers("axis", 2)),
        ],
    )


def test_a_stream_along_the_last_axis(tmp_path: Path) -> None:
    path = convolutional(tmp_path)
    oracle = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    program = covp.compile(path, "riscv32f", streaming=True)
    streaming = program.graph.streaming
    assert streaming is not None and (streaming.axis, streaming.window) == (2, 20)
    data = np.random.default_rng(3).normal(0, 1, (1, 4, 26)).astype(np.float32)
    with covp.Session("riscv32f") as session:
        network = session.load(program)
        for end in range(1, 27):
            got = network.run(data[:, :, end - 1 : end])
            if end >= streaming.warm_up:
                (wanted,) = oracle.run(["y"], {"x": data[:, :, end - 20 : end]})
                assert np.allclose(got, wanted, atol=1e-5)


def test_the_commands_take_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        ((str(recurrent(tmp_path)), "--state", "h0=hn"), "of which states 20"),
        ((str(convolutional(tmp_path)), "--streaming=1"), "1 of 20 rows are new"),
    ):
        with pytest.raises(SystemExit) as done:
            main(["run", *arguments, "-p", "riscv32f"])
        assert done.value.code == 0 and said in capsys.readouterr().out
