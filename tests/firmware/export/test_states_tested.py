"""The self-test of a network with states: wrong ways to keep them do not pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from covp.evaluation import build
from covp.firmware import Project, link_project
from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph
from covp.graph.ops.circular_buffer import CircularBuffer
from covp.graph.zoo.builder import GraphBuilder

from .firmware import last_line

SHAPE = (1, 1, 4)


def sums() -> Graph:
    """The sum of all inputs, the sum of those sums, and a value that comes an inference later."""
    builder = GraphBuilder("sums")
    x = builder.input(SHAPE, np.float32)
    start = np.full(SHAPE, 0.5, np.float32)
    total, twice, late = (builder.state(name, start) for name in ("total", "twice", "late"))
    once = builder.add("ADD", x, total, attributes=Elementwise())
    again = builder.add("ADD", once, twice, attributes=Elementwise())
    out = builder.add("ADD", again, late, attributes=Elementwise())
    for before, after in ((total, once), (twice, again), (late, x)):
        builder.becomes(before, after)
    return builder.graph(out)


def window() -> Graph:
    """A window of the latest three inputs, of which only the first counts: seen with the third."""
    builder = GraphBuilder("window")
    x = builder.input(SHAPE, np.float32)
    rows = builder.state("rows", np.zeros((1, 3, 4), np.float32))
    after = builder.add("CIRCULAR_BUFFER", rows, x, attributes=CircularBuffer(1))
    builder.becomes(rows, after)
    return builder.graph(after)


@cache
def project(name: str) -> Project:
    graph = {"sums": sums, "window": window}.get(name)
    if graph is not None:
        return Project.of(build(graph(), "cortex-m4", schedules=None))
    return Project.of(build(name, "cortex-m4", streaming=True))


def planted(name: str) -> Mapping[str, tuple[str, str]]:
    """Lines of C by what is wrong with them: before the layers, after them."""
    program = project(name).program
    found = {"all begin anew": (f"{program.name}_reset_states(arena);", "")}
    for number, state in enumerate(program.states):
        offset, size = state.tensor.offset, state.tensor.nbytes
        first = ", ".join(map(str, np.ascontiguousarray(state.initial).tobytes()))
        array = f"static const uint8_t first[] = {{{first}}};"
        lost = f"{{ {array} memcpy(arena + {offset}, first, {size}); }}"
        found[f"{state.name} is lost"] = (lost, "")
        for other in program.states[:number]:
            if (other.tensor.shape, other.tensor.dtype) == (state.tensor.shape, state.tensor.dtype):
                swap = (
                    f"for (int i = 0; i < {size}; i++) {{ const uint8_t x = arena[{offset} + i]; "
                    f"arena[{offset} + i] = arena[{other.tensor.offset} + i]; "
                    f"arena[{other.tensor.offset} + i] = x; }}"
                )
                found[f"{other.name} and {state.name} are exchanged"] = ("", swap)
    return found


def verdict(made: Project) -> str:
    return last_line(made.program, link_project(made).read_bytes())


def with_bug(made: Project, before: str, after: str) -> Project:
    """The project with lines of C in its inference."""
    name = made.program.name
    file = f"src/{name}_infer.c"
    head, infer, body = made.library.files[file].rpartition(
        f"void {name}_infer(uint8_t *arena)\n{{"
    )
    assert infer and body.rstrip().endswith("}")
    text = f"{head}{infer}\n    {before}{body.rstrip()[:-1]}    {after}\n}}\n"
    other = replace(made)
    library = replace(made.library, files={**made.library.files, file: text})
    other.__dict__["library"] = library
    return other


@pytest.mark.parametrize("name", ["sums", "window", pytest.param("sww", marks=pytest.mark.slow)])
def test_wrong_ways_to_keep_states_do_not_pass(name: str) -> None:
    made = project(name)
    assert 1 + len(made.later) >= 3
    assert verdict(made) == "pass"
    for what, (before, after) in planted(name).items():
        assert verdict(with_bug(made, before, after)).startswith("fail: "), what


def test_a_network_without_states_is_tested_once() -> None:
    builder = GraphBuilder("plain")
    x = builder.input(SHAPE, np.float32)
    made = Project.of(build(builder.graph(builder.add("ADD", x, x, attributes=Elementwise())),
                            "cortex-m4", schedules=None))  # fmt: skip
    assert not made.later and "frame" not in made.sample["plain_selftest.h"]
    assert verdict(made) == "pass"
