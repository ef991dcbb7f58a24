"""Variables of .tflite files: resources with an initialization, TFLM's circular buffer, second
subgraphs, buffers outside the flatbuffer.
"""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.reference import ReferenceExecutor
from covp.graph.tflite import read_tflite
from covp.graph.zoo import tflite_writer
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import in_file, write_tflite

Array = NDArray[Any]
START = np.array([[5.0, -2.0, 0.5]], np.float32)


def accumulator() -> Graph:
    """sum += x; the output is the sum of before times x. A second state remembers x."""
    builder = GraphBuilder("accumulator")
    x = builder.input((1, 3), np.float32)
    total = builder.state("total", START)
    last = builder.state("last", np.zeros((1, 3), np.float32))
    after = builder.add("ADD", total, x, attributes=Elementwise())
    product = builder.add("MUL", total, x, attributes=Elementwise())
    y = builder.add("SUB", product, last, attributes=Elementwise())
    builder.becomes(total, after)
    builder.becomes(last, x)
    return builder.graph(y)


def litert_runs(data: bytes, samples: list[Array]) -> list[Array]:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    machine = interpreter.Interpreter(model_content=data)
    machine.allocate_tensors()
    results = []
    for sample in samples:
        machine.set_tensor(machine.get_input_details()[0]["index"], sample)
        machine.invoke()
        results.append(machine.get_tensor(machine.get_output_details()[0]["index"]).copy())
    return results


def test_resources_are_states_initialized_by_the_second_subgraph() -> None:
    """VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE, against LiteRT."""
    data = write_tflite(accumulator())
    graph = read_tflite(data)
    assert [op.kind for op in graph.ops] == ["ADD", "MUL", "SUB"]
    assert len(graph.states) == 2
    np.testing.assert_array_equal(graph.states[0].initial, START)
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(1, 3)).astype(np.float32) for _ in range(4)]
    reference = ReferenceExecutor(graph)
    for sample, wanted in zip(samples, litert_runs(data, samples), strict=True):
        np.testing.assert_allclose(reference.run(sample)[0], wanted, rtol=1e-6)


@pytest.mark.process
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_resources_on_a_core(platform: str) -> None:
    import covp

    graph = read_tflite(write_tflite(accumulator()))
    reference = ReferenceExecutor(graph)
    with covp.Session(platform) as session:
        module = session.load(covp.compile(graph, platform))
        for number in range(3):
            x = np.full((1, 3), number - 0.5, np.float32)
            np.testing.assert_allclose(module.run(x), reference.run(x)[0], rtol=1e-6)


def test_a_variable_that_is_never_assigned_is_a_constant() -> None:
    builder = GraphBuilder("constant")
    x = builder.input((1, 3), np.float32)
    kept = builder.state("kept", START)
    y = builder.add("ADD", x, kept, attributes=Elementwise())
    data = write_tflite(builder.graph(y))
    graph = read_tflite(data)
    assert not graph.states or graph.states[0].after is graph.states[0].before
    zero = np.zeros((1, 3), np.float32)
    np.testing.assert_array_equal(ReferenceExecutor(graph).run(zero)[0], START)


def circular(options: bytes | None) -> bytes:
    """TFLM's operator in a file: rows of a variable tensor, shifted by one."""
    builder = flatbuffers.Builder(256)

    def vector(values: list[int]) -> int:
        return int(builder.CreateNumpyVector(np.array(values, np.int32)))

    def tables(offsets: list[int]) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def tensor(name: str, shape: list[int], variable: bool) -> int:
        text, extents = builder.CreateString(name), vector(shape)
        scale = builder.CreateNumpyVector(np.array([0.5], np.float32))
        zero = builder.CreateNumpyVector(np.array([7], np.int64))
        tflite.QuantizationParametersStart(builder)
        tflite.QuantizationParametersAddScale(builder, scale)
        tflite.QuantizationParametersAddZeroPoint(builder, zero)
        quantization = tflite.QuantizationParametersEnd(builder)
        tflite.TensorStart(builder)
        tflite.TensorAddShape(builder, extents)
        tflite.TensorAddType(builder, tflite.TensorType.INT8)
        tflite.TensorAddName(builder, text)
        tflite.TensorAddQuantization(builder, quantization)
        tflite.TensorAddIsVariable(builder, variable)
        return int(tflite.TensorEnd(builder))

    name = builder.CreateString("CIRCULAR_BUFFER")
    tflite.OperatorCodeStart(builder)
    tflite.OperatorCodeAddBuiltinCode(builder, tflite.BuiltinOperator.CUSTOM)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, tflite.BuiltinOperator.CUSTOM)
    tflite.OperatorCodeAddCustomCode(builder, name)
    codes = tables([tflite.OperatorCodeEnd(builder)])
    own = None if options is None else builder.CreateByteVector(options)
    ins, outs = vector([0]), vector([1])
    tflite.OperatorStart(builder)
    tflite.OperatorAddInputs(builder, ins)
    tflite.OperatorAddOutputs(builder, outs)
    if own is not None:
        tflite.OperatorAddCustomOptions(builder, own)
    operators = tables([tflite.OperatorEnd(builder)])
    tensors = tables([tensor("x", [1, 1, 1, 2], False), tensor("rows", [1, 3, 1, 2], True)])
    tflite.SubGraphStart(builder)
    tflite.SubGraphAddTensors(builder, tensors)
    tflite.SubGraphAddInputs(builder, ins)
    tflite.SubGraphAddOutputs(builder, outs)
    tflite.SubGraphAddOperators(builder, operators)
    subgraphs = tables([tflite.SubGraphEnd(builder)])
    tflite.BufferStart(builder)
    buffers = tables([tflite.BufferEnd(builder)])
    tflite.ModelStart(builder)
    tflite.ModelAddOperatorCodes(builder, codes)
    tflite.ModelAddSubgraphs(builder, subgraphs)
    tflite.ModelAddBuffers(builder, buffers)
    builder.Finish(tflite.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


def flexible(cycles: int) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Int("cycles_max", cycles)
    return bytes(builder.Finish())


def test_tflms_circular_buffer() -> None:
    """Rows of the zero point at first, then the newest three."""
    graph = read_tflite(circular(flexible(1)))
    reference = ReferenceExecutor(graph)
    rows = [[7, 7], [7, 7], [7, 7]]
    for number in range(5):
        x = np.array([[[[number, -number]]]], np.int8)
        rows = [*rows[1:], [number, -number]]
        np.testing.assert_array_equal(reference.run(x)[0].reshape(3, 2), rows)
    with pytest.raises(ModelError, match=r"operator 0 \(CIRCULAR_BUFFER\): it ends the inference"):
        read_tflite(circular(flexible(2)))


def test_an_input_of_another_type_than_its_variable_is_refused() -> None:
    graph = accumulator()
    graph.states[0].after.shape = (3,)
    with pytest.raises(ModelError, match=r"one shape and type is needed|should have shape"):
        read_tflite(write_tflite(graph))


def test_control_flow_is_named() -> None:
    x, y = (Tensor(name, (4,), np.dtype(np.float32)) for name in "xy")
    data = write_tflite(Graph("loop", [x], [y], [Op("WHILE", "while_0", [x], [y])]))
    with pytest.raises(ModelError, match="operator 0 is WHILE, control flow at run time"):
        read_tflite(data)


class Outside(tflite_writer._Writer):
    """Writes the contents of buffers behind the flatbuffer, as for files above 2 GB."""

    end = 2

    def _buffer(self, content: bytes) -> int:
        if not content:
            return self._table("Buffer")
        return self._table("Buffer", Offset=self.end, Size=len(content))


def test_buffers_outside_the_flatbuffer() -> None:
    """Offsets count from the start of the file."""
    builder = GraphBuilder("outside")
    x = builder.input((1, 3), np.float32)
    y = builder.add("ADD", x, builder.constant(START), attributes=Elementwise())
    graph = builder.graph(y)
    first, second = (Outside(in_file(graph)) for _ in range(2))
    second.end = len(first.data())
    data = second.data()
    assert len(data) == second.end
    data += START.tobytes()
    found = ReferenceExecutor(read_tflite(data)).run(START)[0]
    np.testing.assert_array_equal(found, 2 * START)
    with pytest.raises(ModelError, match="damaged or truncated"):
        read_tflite(data[:-4])
