"""SVDF: the reference against LiteRT over several inferences, kernels against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import Softmax
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.svdf import STATE, Svdf
from covp.graph.reference import ReferenceExecutor, run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder, quantization
from covp.graph.zoo.tflite_writer import write_tflite

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
FORMS = [("float32", "float32"), ("int8", "int16"), ("int8", "int8")]
BATCH, FEATURES, UNITS, STEPS = 2, 7, 3, 5


def network(data: str, kept: str, seed: int, rank: int = 2) -> Graph:
    """An SVDF of random weights and scales; ``kept`` is the type of its state."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder("svdf")
    filters = UNITS * rank
    if data == "float32":
        x = builder.input((BATCH, FEATURES), np.float32)
        weights = [rng.normal(0, 1, (filters, n)).astype(np.float32) for n in (FEATURES, STEPS)]
        feature, time = (builder.constant(w) for w in weights)
        bias = builder.constant(rng.normal(0, 1, UNITS).astype(np.float32))
        state = builder.state("state", np.zeros((BATCH, filters * STEPS), np.float32))
        scale = None
    else:
        info = np.iinfo(kept)
        x = builder.input((BATCH, FEATURES), scale=0.05, zero_point=-5)
        feature = builder.constant(rng.integers(-127, 128, (filters, FEATURES), np.int8), 0.01)
        own = rng.integers(-info.max, info.max, (filters, STEPS), np.dtype(kept).type)
        time = builder.constant(own, 1 / info.max)
        zero = 7 if kept == "int8" else 0
        initial = np.full((BATCH, filters * STEPS), zero, kept)
        state = builder.state("state", initial, 10 / info.max, zero)
        bias = builder.constant(
            rng.integers(-1000, 1000, UNITS, np.int32), state.scale * time.scale
        )
        scale = 0.06
    y, after = builder.add_all(
        "SVDF", x, feature, time, bias, state,
        attributes=Svdf(rank, "relu"),
        outputs=2, scale=scale, zero_point=3,
    )  # fmt: skip
    after.dtype, after.quantization = state.dtype, state.quantization
    builder.becomes(state, after)
    return builder.graph(y)


def values(tensor: Tensor, rng: np.random.Generator) -> Any:
    if tensor.dtype == np.float32:
        return rng.normal(0, 1, tensor.shape).astype(np.float32)
    info = np.iinfo(tensor.dtype)
    return rng.integers(info.min, info.max, tensor.shape, tensor.dtype.type, endpoint=True)


@pytest.mark.parametrize(("data", "kept"), FORMS[:2])
def test_equals_litert_over_several_inferences(data: str, kept: str) -> None:
    """LiteRT's reference kernel has no int8 state."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    rng = np.random.default_rng(1)
    for seed in range(4):
        content = write_tflite(network(data, kept, seed, rank=1 + seed % 3))
        machine = interpreter.Interpreter(
            model_content=content,
            experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF,
        )
        machine.allocate_tensors()
        graph = read_tflite(content)
        reference = ReferenceExecutor(graph)
        seen = set()
        for _ in range(STEPS + 2):
            x = values(graph.inputs[0], rng)
            machine.set_tensor(machine.get_input_details()[0]["index"], x)
            machine.invoke()
            theirs = machine.get_tensor(machine.get_output_details()[0]["index"])
            ours = reference.run(x)[0]
            seen |= set(ours.ravel().tolist())
            np.testing.assert_allclose(ours, theirs, atol=1e-5 if data == "float32" else 0)
        assert len(seen) > 10


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("data", "kept"), FORMS)
def test_kernel_equals_reference(
    run_layer: Any, platform: str, data: str, kept: str, toolchain: str
) -> None:
    rng = np.random.default_rng(2)
    for rank in (1, 2):
        op = network(data, kept, 3, rank).ops[0]
        x, state = values(op.input(0), rng), values(op.input(STATE), rng)
        arguments = [x, *(t.data for t in op.inputs[1:4] if t is not None), state]
        wanted = definition("SVDF").reference(op, arguments)
        for ours, theirs in zip(
            run_layer(platform, op, x, state, toolchain=toolchain), wanted, strict=True
        ):
            assert len(np.unique(theirs)) > 2
            np.testing.assert_allclose(ours, theirs, atol=1e-5 if data == "float32" else 0)


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_softmax_in_units_of_2_to_minus_16(run_layer: Any, litert: Any, platform: str) -> None:
    """int8 to int16, as at the end of TFLM's keyword spotter of SVDF layers."""
    x = Tensor("x", (3, 11), np.dtype(np.int8), quantization(0.07, 5))
    y = Tensor("y", (3, 11), np.dtype(np.int16), quantization(1 / 65535, -32768))
    op = Op("SOFTMAX", "softmax_0", [x], [y], Softmax(1.0))
    data = write_tflite(Graph("softmax", [x], [y], [op]))
    value = np.random.default_rng(3).integers(-128, 128, x.shape).astype(np.int8)
    wanted = litert(data, [value])[0]
    assert len(np.unique(wanted)) > 20
    np.testing.assert_array_equal(run_reference(read_tflite(data), [value])[0], wanted)
    np.testing.assert_array_equal(run_layer(platform, op, value)[0], wanted)
