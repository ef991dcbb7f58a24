"""States: what a network keeps between inferences, from the reference to the exported firmware."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import covp
from covp.compilers.elf import ElfImage
from covp.errors import ModelError, UsageError
from covp.evaluation import Sample, build, check_layers, run
from covp.firmware import Project, export_project, link_project
from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph, Tensor
from covp.graph.ops.circular_buffer import CircularBuffer
from covp.graph.zoo.builder import GraphBuilder
from covp.runtime.hosted_graph import HostedGraph
from covp.runtime.linking import write_image
from tests.plain import plain

Array = NDArray[Any]
SHAPE = (1, 4, 2)


class Recipe:
    """A graph of sums, renamings and shifts, which plain numpy computes as well."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.builder = GraphBuilder("kept")
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.steps: list[tuple[str, list[str], str]] = []
        self.input = self.builder.input(SHAPE, np.float32)
        count = draw(st.integers(1, 4))
        self.initial = {
            f"s{i}": rng.integers(-9, 10, SHAPE).astype(np.float32) * draw(st.booleans())
            for i in range(count)
        }
        before = [self.builder.state(name, value) for name, value in self.initial.items()]
        data = rng.integers(-9, 10, SHAPE).astype(np.float32)
        constant = self.builder.constant(data)
        self.constants: dict[str, Array] = {constant.name: data}
        pool: list[Tensor] = [self.input, *before, constant]
        for _ in range(draw(st.integers(1, 6))):
            pool.append(self._operator(draw, pool))
        self.after = {}
        for name, tensor in zip(self.initial, before, strict=True):
            value = draw(st.sampled_from(pool))
            self.builder.becomes(tensor, value)
            self.after[name] = value.name
        computed = [t for t in pool if self.builder.graph().producer(t) is not None]
        self.outputs = [draw(st.sampled_from(computed))]
        self.names = {f"s{i}": tensor.name for i, tensor in enumerate(before)}

    def _operator(self, draw: st.DrawFn, pool: list[Tensor]) -> Tensor:
        kind = draw(st.sampled_from(["ADD", "RESHAPE", "CIRCULAR_BUFFER"]))
        given_ = [draw(st.sampled_from(pool)) for _ in range(1 if kind == "RESHAPE" else 2)]
        how: dict[str, Any] = {"attributes": Elementwise()}
        if kind == "RESHAPE":
            how = {"shape": SHAPE}
        if kind == "CIRCULAR_BUFFER":
            how = {"attributes": CircularBuffer(1)}
        out = self.builder.add(kind, *given_, **how)
        self.steps.append((kind, [t.name for t in given_], out.name))
        return out

    def graph(self) -> Graph:
        return self.builder.graph(*self.outputs)

    def expected(self, inputs: list[Array]) -> list[Array]:
        """The outputs of inferences one after the other."""
        states: dict[str, Array] = dict(self.initial)
        found: list[Array] = []
        for x in inputs:
            values: dict[str, Array] = {**self.constants, self.input.name: x}
            values |= {self.names[name]: value for name, value in states.items()}
            for kind, names, out in self.steps:
                a = values[names[0]]
                if kind == "ADD":
                    values[out] = a + values[names[1]]
                elif kind == "RESHAPE":
                    values[out] = a
                else:
                    values[out] = values[names[1]]  # as many new rows as the buffer has
            states = {name: values[after] for name, after in self.after.items()}
            found.append(values[self.outputs[0].name])
        return found


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    return Recipe(draw)


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32f", "cortex-m4"])
@settings(deadline=None, max_examples=8)
@given(recipe=recipes())
def test_states_are_kept_as_numpy_keeps_them(platform: str, recipe: Recipe) -> None:
    """Any states may become the input, a constant, each other's old value or what was computed."""
    rng = np.random.default_rng(5)
    inputs = [rng.integers(-9, 10, SHAPE).astype(np.float32) for _ in range(3)]
    wanted = recipe.expected(inputs)
    graph = recipe.graph()
    try:
        program = covp.compile(graph, platform, schedules=None)
    except ModelError as error:
        assert "is a constant; nothing is left" in str(error)
        return
    executor = program.executor()
    assert all(np.array_equal(executor.run(x)[0], y) for x, y in zip(inputs, wanted, strict=True))
    with covp.Session(platform) as session:
        for hosted in (False, True):
            module = session.load(program, hosted=hosted)
            for _ in range(2):
                for x, y in zip(inputs, wanted, strict=True):
                    assert np.array_equal(module.run(x), y)
                module.reset()
            module.unload()
    made = build(graph, platform, schedules=None)
    check = check_layers(made, Sample.random(graph).and_probes(graph))
    assert check.mismatch is None and check.inputs == 5


def accumulator() -> Graph:
    """The sum of all inputs, and a window of the latest three."""
    builder = GraphBuilder("sums")
    x = builder.input((1, 1, 4), np.float32)
    total = builder.state("total", np.full((1, 1, 4), 0.5, np.float32))
    window = builder.state("window", np.zeros((1, 3, 4), np.float32))
    sums = builder.add("ADD", x, total, attributes=Elementwise())
    rows = builder.add("CIRCULAR_BUFFER", window, x, attributes=CircularBuffer(1))
    builder.becomes(total, sums)
    builder.becomes(window, rows)
    return builder.graph(sums, rows)


def test_states_change_in_place_and_are_reported() -> None:
    made = build(accumulator(), "riscv32f", schedules=None)
    program = made.program
    assert not program.keep_function, "both kernels work in place: nothing is left to move"
    assert program.state_bytes == 16 + 48 and program.arena_bytes == 16 + 16 + 48
    result = run(made)
    assert result.matches_reference and result.check.inputs == 5
    record = plain(result.record())
    assert record["memory"]["state_bytes"] == 64
    assert record["states"][1] == {
        "name": "window", "dtype": "float32", "shape": [1, 3, 4], "bytes": 48
    }  # fmt: skip


def test_a_session_sets_and_reads_states() -> None:
    program = covp.compile(accumulator(), "riscv32f")
    x = np.full((1, 1, 4), 2, np.float32)
    with covp.Session("riscv32f") as session:
        module = session.load(program)
        assert module.run(x)[0].tolist() == [[[2.5] * 4]]
        assert module.states()["total"].tolist() == [[[2.5] * 4]]
        module.reset({"total": np.full((1, 1, 4), 7, np.float32)})
        assert module.run(x)[0].tolist() == [[[9.0] * 4]]
        assert not module.states()["window"][0, :2].any()
        with pytest.raises(UsageError, match=r"no state 'totals'.*total"):
            module.reset({"totals": x})
        with pytest.raises(UsageError, match=r"state total must be float32 of shape \(1, 1, 4\)"):
            module.reset({"total": x[0]})


def test_a_part_of_an_inference_leaves_the_states() -> None:
    program = covp.compile(accumulator(), "riscv32f")
    x = np.full((1, 1, 4), 2, np.float32)
    with covp.Session("riscv32f") as session:
        module = session.load(program, hosted=True)
        assert isinstance(module, HostedGraph)
        name = program.outputs[0].name
        for _ in range(2):
            assert module.run_until(name, x).tolist() == [[[2.5] * 4]]
        assert module.run(x)[0].tolist() == [[[2.5] * 4]]
        assert module.run(x)[0].tolist() == [[[4.5] * 4]]


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32f", "cortex-m4"])
def test_the_firmware_resets_and_checks_itself(platform: str, tmp_path: Any) -> None:
    made = build(accumulator(), platform)
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    project = Project.of(made, Sample.of(made.graph, [x]))
    export_project(project, tmp_path / "p")
    header = (tmp_path / "p/model/include/sums.h").read_text()
    assert "#define SUMS_STATE_BYTES 64" in header
    assert "int sums_reset(sums_context *context);" in header
    assert "`sums_reset()`" in (tmp_path / "p/README.md").read_text()
    for wrong in (0, 2):
        outputs = tuple(array + wrong for array in project.simulated.outputs)
        project = Project(dataclasses.replace(project.simulated, outputs=outputs))
        elf = ElfImage(link_project(project).read_bytes())
        with covp.Session(platform) as session:
            write_image(session.device, elf)
            symbols = elf.symbols
            session.device.execute(symbols["covp_reset"].address, symbols["covp_exit"].address)
            status = session.device.read(symbols["covp_exit_status"].address, 4)
        assert (int.from_bytes(status, "little") != 0) == bool(wrong)


def test_a_pass_that_loses_a_state_is_an_error() -> None:
    def careless(graph: Graph) -> Graph:
        return Graph(graph.name, graph.inputs, graph.outputs, graph.ops)

    with pytest.raises(ModelError, match=r"pass careless\(\) lost the state total"):
        covp.compile(accumulator(), "riscv32f", passes=[careless])
