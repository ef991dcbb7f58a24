"""UNIDIRECTIONAL_SEQUENCE_LSTM: the reference against LiteRT over several inferences, kernels
against the reference, the gates' functions on all 65536 inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.codegen.kernels.recurrent.gate_functions import gate_functions
from covp.errors import ModelError
from covp.graph.fixed_point import logistic, tanh
from covp.graph.graph import Graph
from covp.graph.ops import definition
from covp.graph.ops.quantized_lstm import QuantizedLstm
from covp.graph.ops.sequence_lstm import CELL, HIDDEN, SequenceLstm
from covp.graph.reference import ReferenceExecutor
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.session import Session

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
CELL_POWERS = range(-15, -8)
"""Of the scales that LiteRT takes."""
BATCH, STEPS, FEATURES, CELLS = 2, 5, 7, 6


def network(
    form: str,
    seed: int,
    time_major: bool = False,
    clip: float = 0.0,
    power: int | None = None,
    steps: int = STEPS,
) -> Graph:
    """An LSTM of random weights and scales; ``form`` is the type of its activations.

    The cell's scale is two to ``power``, or to a random one that the reader accepts.
    """
    rng = np.random.default_rng(seed)
    builder = GraphBuilder("lstm")
    quantized = form != "float32"
    zero = int(rng.integers(-20, 20)) if form == "int8" else 0
    step = {"int8": 1.0, "int16": 1 / 256, "float32": None}[form]
    power = int(rng.choice(CELL_POWERS)) if power is None else power

    def scale(real: float) -> float | None:
        return None if step is None else real * step

    def weights(*shape: int) -> Any:
        if not quantized:
            return builder.constant(rng.normal(0, 0.5, shape).astype(np.float32))
        stored = rng.integers(-127, 128, shape).astype(np.int8)
        return builder.constant(stored, float(rng.uniform(0.002, 0.02)))

    shape = (steps, BATCH, FEATURES) if time_major else (BATCH, steps, FEATURES)
    x = builder.input(shape, form, scale(0.05), zero)
    inputs = [weights(CELLS, FEATURES) for _ in range(4)]
    recurrent = [weights(CELLS, CELLS) for _ in range(4)]
    bias_type = {"int8": np.int32, "int16": np.int64, "float32": np.float32}[form]
    biases = []
    for gate in range(4):
        values = rng.normal(0, 500 * 256 ** (form == "int16") if quantized else 0.5, CELLS)
        own = x.scale * inputs[gate].scale if quantized else None
        biases.append(builder.constant(values.astype(bias_type), own))
    hidden = builder.state("hidden", np.zeros((BATCH, CELLS), form), scale(1 / 128), zero // 4)
    if form == "int8":
        hidden.data = None
        builder.states[-1].initial[...] = zero // 4
    cell_type = np.int16 if quantized else np.float32
    cell = builder.state(
        "cell", np.zeros((BATCH, CELLS), cell_type), 2.0**power if quantized else None
    )
    none = [None] * 3
    sources = [x, *inputs, *recurrent, *none, *biases, None, None, hidden, cell, *none, None]
    y, *after = builder.add_all(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        *sources,
        attributes=SequenceLstm(time_major, clip),
        outputs=3,
        scale=scale(1 / 128),
        zero_point=zero // 4,
    )
    for tensor, before in zip(after, (hidden, cell), strict=True):
        tensor.dtype, tensor.quantization = before.dtype, before.quantization
        builder.becomes(before, tensor)
    return builder.graph(y)


def values(graph: Graph, rng: np.random.Generator) -> NDArray[Any]:
    source = graph.inputs[0]
    if source.dtype == np.float32:
        return rng.normal(0, 1, source.shape).astype(np.float32)
    info = np.iinfo(source.dtype)
    return rng.integers(info.min, info.max, source.shape, endpoint=True).astype(source.dtype)


@pytest.mark.parametrize("form", ["float32", "int8"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_equals_litert_over_several_inferences(form: str, time_major: bool, clip: float) -> None:
    """LiteRT's reference kernel has no int16 activations."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    rng = np.random.default_rng(1)
    for seed in range(4):
        data = write_tflite(network(form, seed, time_major, clip))
        machine = interpreter.Interpreter(
            model_content=data,
            experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF,
        )
        machine.allocate_tensors()
        graph = read_tflite(data)
        reference = ReferenceExecutor(graph)
        for _ in range(3):
            x = values(graph, rng)
            machine.set_tensor(machine.get_input_details()[0]["index"], x)
            machine.invoke()
            theirs = machine.get_tensor(machine.get_output_details()[0]["index"])
            ours = reference.run(x)[0]
            assert len(np.unique(ours)) > 10
            np.testing.assert_allclose(ours, theirs, atol=1e-6 if form == "float32" else 0)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("form", ["float32", "int8", "int16"])
def test_kernel_equals_reference(run_layer: Any, platform: str, form: str, toolchain: str) -> None:
    """Whole sequences from states of any value, both orders of the axes."""
    rng = np.random.default_rng(2)
    for time_major, clip in ((False, 0.0), (True, 0.5)):
        graph = network(form, 5, time_major, clip)
        op = graph.ops[0]
        x = values(graph, rng)
        states = [
            rng.normal(0, 1, t.shape).astype(t.dtype)
            if form == "float32"
            else rng.integers(np.iinfo(t.dtype).min, np.iinfo(t.dtype).max, t.shape, t.dtype.type)
            for t in (op.input(HIDDEN), op.input(CELL))
        ]
        arguments = [None if t is None else t.data for t in op.inputs]
        arguments[0], arguments[HIDDEN], arguments[CELL] = x, *states
        wanted = definition(op.kind).reference(op, arguments)
        found = run_layer(platform, op, x, *states, toolchain=toolchain)
        for ours, theirs in zip(found, wanted, strict=True):
            assert len(np.unique(theirs)) > 5
            np.testing.assert_allclose(ours, theirs, atol=1e-5 if form == "float32" else 0)


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_states_change_where_they_are(platform: str) -> None:
    """A program over several inferences, without copies of its states."""
    rng = np.random.default_rng(4)
    graph = network("int8", 7)
    program = covp.compile(graph, platform)
    assert program.keep_function == ""
    reference = ReferenceExecutor(graph)
    with Session(platform) as session:
        module = session.load(program)
        for _ in range(3):
            x = values(graph, rng)
            np.testing.assert_array_equal(module.run(x), reference.run(x)[0])
        for name, found in module.states().items():
            np.testing.assert_array_equal(found, reference.states[name])


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_sums_beyond_32_bits(run_layer: Any, platform: str, form: str) -> None:
    """Of int8 they wrap, as on TFLM's cores; of int16 they have 64 bits."""
    rng = np.random.default_rng(6)
    graph = network(form, 9)
    op = graph.ops[0]
    for position in range(12, 16):
        bias = op.input(position)
        assert bias.data is not None
        limit = 2**31 - 1 if form == "int8" else 2**40
        bias.data = rng.choice([-limit, limit, 1000], bias.shape).astype(bias.dtype)
    x = values(graph, rng)
    states = [np.zeros(t.shape, t.dtype) for t in (op.input(HIDDEN), op.input(CELL))]
    arguments = [None if t is None else t.data for t in op.inputs]
    arguments[0], arguments[HIDDEN], arguments[CELL] = x, *states
    wanted = definition(op.kind).reference(op, arguments)
    for ours, theirs in zip(run_layer(platform, op, x, *states), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("power", CELL_POWERS)
def test_every_scale_of_the_cell_equals_litert(litert: Any, power: int) -> None:
    """Cells that grow by one in each step, beyond 16 where the scale allows it."""
    rng = np.random.default_rng(power + 40)
    graph = network("int8", 3, power=power, steps=40)
    for position in range(12, 16):
        bias = graph.ops[0].input(position)
        assert bias.data is not None
        bias.data[...] = rng.choice([-1, 1], CELLS) * 30_000 if position == 14 else 30_000
    data = write_tflite(graph)
    x = graph.inputs[0].zero_point + rng.integers(-3, 4, graph.inputs[0].shape)
    ours = ReferenceExecutor(read_tflite(data)).run(x.astype(np.int8))
    assert np.abs(ours[0].astype(int) - graph.outputs[0].zero_point).max() > 90
    np.testing.assert_array_equal(ours[0], litert(data, [x.astype(np.int8)])[0])


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@pytest.mark.parametrize("power", CELL_POWERS)
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_gate_functions_on_every_input(platform: str, power: int, form: str) -> None:
    """sigmoid and tanh against gemmlowp's functions and against float."""
    raw = np.arange(-32768, 32768)
    numbers = QuantizedLstm.of(network(form, 0, power=power).ops[0])
    names = ("sigmoid", "tanh_gate", "tanh_cell")
    calls = "\n".join(
        f"        out[i + {65536 * n}] = (int16_t){name}(i - 32768);"
        for n, name in enumerate(names)
    )
    source = (
        f"#include <stdint.h>\n{gate_functions(numbers)}\nvoid every(int16_t *out)\n{{\n"
        f"    for (int32_t i = 0; i < 65536; i++) {{\n{calls}\n    }}\n}}\n"
    )
    with Session(platform) as session:
        out = session.tensor(np.zeros((3, 65536), np.int16))
        session.load_c(source)["every"](out)
        found = out.numpy()
    assert numbers.cell_power == power
    exact = [1 / (1 + np.exp(-raw / 4096)), np.tanh(raw / 4096), np.tanh(raw * 2.0**power)]
    if form == "int8":
        gemmlowp = [logistic(raw, 3, 16), tanh(raw, 3, 16), tanh(raw, 15 + power, 16)]
        np.testing.assert_array_equal(found, gemmlowp)
    assert np.abs(found - np.array(exact) * 32768).max() < 24


def test_what_is_not_supported_is_named() -> None:
    graph = network("int8", 0)
    cell = graph.ops[0].input(CELL)
    cell.quantization, kept = graph.ops[0].input(0).quantization, cell.quantization
    with pytest.raises(ModelError, match=r"cell state cell_before has scale .* power of two"):
        read_tflite(write_tflite(graph))
    cell.quantization = kept
    graph.ops[0].inputs[9] = graph.ops[0].input(12)
    with pytest.raises(ModelError, match="it has peepholes, which is not supported"):
        read_tflite(write_tflite(graph))
