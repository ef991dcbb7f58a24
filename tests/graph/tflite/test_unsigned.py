"""Quantized uint8 files: what LiteRT computes of them, on cores too; uint8 in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.codegen.generate import generate
from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.session import Session
from covp.testing import ConvCase, OperatorCase, PoolCase, layers

bounded = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def unsigned(graph: Graph, weights_zero_point: int = 0) -> Graph:
    """The graph with uint8 in place of int8; weights get a zero point besides their 128."""
    changed: dict[int, Tensor] = {}

    def of(tensor: Tensor | None) -> Any:
        if tensor is None or tensor.dtype != np.int8:
            return tensor
        if id(tensor) not in changed:
            scaled, data = tensor.quantization, tensor.data
            assert scaled is not None
            zero = 128 + (weights_zero_point if data is not None else 0)
            if data is not None:
                data = (data.astype(np.int16) + 128).astype(np.uint8)
            points = replace(scaled, zero_point=scaled.zero_point + np.int32(zero))
            changed[id(tensor)] = replace(
                tensor, dtype=np.dtype(np.uint8), quantization=points, data=data
            )
        return changed[id(tensor)]

    ops = [
        replace(op, inputs=[of(t) for t in op.inputs], outputs=[of(t) for t in op.outputs])
        for op in graph.ops
    ]
    return replace(
        graph,
        inputs=[of(t) for t in graph.inputs],
        outputs=[of(t) for t in graph.outputs],
        ops=ops,
    )


def check(litert: Callable[..., Any], graph: Graph, seed: int, tolerance: int = 0) -> None:
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(0, 256, t.shape).astype(np.uint8) for t in graph.inputs]
    data = write_tflite(graph)
    read = read_tflite(data)
    assert [t.name for t in read.inputs] == [t.name for t in graph.inputs]
    for ours, theirs in zip(run_reference(read, inputs), litert(data, inputs), strict=True):
        assert ours.dtype == theirs.dtype == np.uint8
        assert np.abs(ours.astype(int) - theirs).max() <= tolerance


@pytest.mark.parametrize("kind", layers.CONVOLUTIONS)
@pytest.mark.parametrize("zero_point", [0, 17, -90])
@bounded
@given(st.data())
def test_convolutions(litert: Any, kind: str, zero_point: int, data: st.DataObject) -> None:
    layer = data.draw(
        layers.convolutions(kind, dtype="int8", per_channel=False, bias=True, max_channels=9)
    )
    rounded_twice = int(kind == "FULLY_CONNECTED")  # by TFLM, see docs/accuracy.md
    check(litert, unsigned(layer.graph(), zero_point), layer.seed, rounded_twice)


@bounded
@given(layer=layers.pools(dtype="int8"))
def test_pools(litert: Any, layer: Any) -> None:
    """Averages round ties up."""
    check(litert, unsigned(layer.graph()), layer.seed)


@bounded
@given(layer=layers.elementwise(dtype="int8"))
def test_elementwise(litert: Any, layer: Any) -> None:
    check(litert, unsigned(layer.graph()), layer.seed)


@bounded
@given(layer=layers.layers("SOFTMAX", "RESHAPE", "PAD", "STRIDED_SLICE", "LEAKY_RELU"))
def test_others(litert: Any, layer: Any) -> None:
    layer = replace(layer, dtype="int8")
    check(litert, unsigned(layer.graph()), layer.seed)


@pytest.mark.process
@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32", "cortex-m0plus"])
@pytest.mark.parametrize("zero_point", [3, -100])
def test_a_network_on_cores(platform: str, zero_point: int) -> None:
    """Weights that need 16 bits and such that do not; convolutions, an average with ties."""
    graph = unsigned(_network(), zero_point)
    read = read_tflite(write_tflite(graph))
    x = np.random.default_rng(3).integers(0, 256, graph.inputs[0].shape).astype(np.uint8)
    program = generate(read, platform)
    with Session(platform) as session:
        found = session.load(program).run(x)
    wanted = run_reference(read, [x])[0]
    assert found.dtype == np.uint8 and len(np.unique(found)) > 5
    assert np.array_equal(found, wanted)


def _network() -> Graph:
    convolution = ConvCase(
        "CONV_2D", size=(12, 12), channels=(3, 8), kernel=(3, 3), same=True, bias=True,
        per_channel=False,
    )  # fmt: skip
    depthwise = ConvCase(
        "DEPTHWISE_CONV_2D", size=(12, 12), channels=(8, 8), kernel=(3, 3), bias=True,
        per_channel=False, seed=1,
    )  # fmt: skip
    pool = PoolCase("AVERAGE_POOL_2D", size=(10, 10), channels=8, filter=(2, 2), stride=(2, 2))
    dense = ConvCase("FULLY_CONNECTED", channels=(200, 10), bias=True, seed=2)
    ops: list[Op] = []
    graphs = [case.graph() for case in (convolution, depthwise, pool, dense)]
    for number, graph in enumerate(graphs):
        (op,) = graph.ops
        if ops:
            op.inputs[0] = ops[-1].output
        op.name = op.output.name = f"{op.kind.lower()}_{number}"
        for tensor in op.inputs[1:]:
            assert tensor is not None
            tensor.name = f"{tensor.name}_{number}"
        ops.append(op)
    return Graph("network", graphs[0].inputs, [ops[-1].output], ops)


def test_numbers_of_uint8_are_refused() -> None:
    layer = OperatorCase("CAST", (4,), None, "uint8", 0.5, 7, "float32")
    graph = layer.graph()
    with pytest.raises(ModelError, match=r"operator 0 \(CAST\): reads the quantized uint8 tensor"):
        read_tflite(write_tflite(graph))
