"""Small networks, and programs of them in which a defect is planted."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.codegen.program import Program
from covp.errors import DeviceFault
from covp.graph.attributes import (
    Concatenation,
    Conv2D,
    Elementwise,
    FullyConnected,
    Padding,
    Pool2D,
    Softmax,
)
from covp.graph.graph import Graph
from covp.graph.zoo.builder import GraphBuilder
from covp.testing.bisect import Finding


def chain() -> Graph:
    """CONV_2D, then an ADD of its output and another CONV_2D of it, FULLY_CONNECTED, SOFTMAX."""
    rng = np.random.default_rng(5)
    b = GraphBuilder("chain")
    x = b.input((1, 6, 6, 2), scale=0.05, zero_point=-3)
    filters = b.constant(rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8), 0.02)
    bias = b.constant(np.arange(4, dtype=np.int32), 0.001)
    valid, same = Conv2D((1, 1), Padding()), Conv2D((1, 1), Padding(1, 1, 1, 1))
    first = b.add("CONV_2D", x, filters, bias, attributes=valid, scale=0.1)
    inner = b.constant(rng.integers(-127, 128, (4, 3, 3, 4)).astype(np.int8), 0.01)
    second = b.add("CONV_2D", first, inner, None, attributes=same, scale=0.1)
    total = b.add("ADD", first, second, attributes=Elementwise(), scale=0.2)
    flat = b.add("RESHAPE", total, shape=(1, 64))
    matrix = b.constant(rng.integers(-127, 128, (5, 64)).astype(np.int8), 0.01)
    dense = b.add("FULLY_CONNECTED", flat, matrix, attributes=FullyConnected(), scale=0.3)
    return b.graph(b.add("SOFTMAX", dense, attributes=Softmax(), scale=1 / 256, zero_point=-128))


def averaging() -> Graph:
    """A pool of float32 images, whose divisions are inexact."""
    b = GraphBuilder("averaging")
    x = b.input((1, 6, 6, 3), np.float32)
    attributes = Pool2D((3, 3), (3, 3), Padding())
    return b.graph(b.add("AVERAGE_POOL_2D", x, attributes=attributes))


def memory() -> Graph:
    """A sum that is kept from one inference to the next."""
    b = GraphBuilder("memory")
    x = b.input((1, 8), np.float32)
    before = b.state("sum", np.zeros((1, 8), np.float32))
    after = b.add("ADD", x, before, attributes=Elementwise())
    b.becomes(before, after)
    return b.graph(b.add("LOGISTIC", after))


def many(inputs: int = 40) -> Graph:
    """A CONCATENATION of more tensors than a call from the host has arguments."""
    b = GraphBuilder("many")
    parts = [b.input((1, 3), scale=0.1) for _ in range(inputs)]
    return b.graph(b.add("CONCATENATION", *parts, attributes=Concatenation(1)))


Planted = Callable[[Graph, str, str, str, str], tuple[Program, Program]]


def planted(
    graph: Graph, platform: str, layer: str, right: str, wrong: str
) -> tuple[Program, Program]:
    """A program, and one in which a text of the C of a layer is another one.

    Args:
        graph: the network.
        platform: that it is compiled for.
        layer: its operator's name.
        right: occurs once in the layer's C; empty: the end of its function.
        wrong: in its place.
    """
    program = covp.compile(graph, platform, schedules=None)
    (file,) = (f"{each.function}.c" for each in program.layers if each.name == layer)
    text = program.sources[file]
    end = text.rindex("}")
    assert not right or text.count(right) == 1, text
    new = text.replace(right, wrong) if right else text[:end] + wrong + text[end:]
    return program, replace(program, sources={**program.sources, file: new})


def line_of(program: Program, finding: Finding, text: str) -> str:
    """ "file.c:12" of a text in the C of the wrong layer."""
    file = f"{finding.function}.c"
    lines = program.sources[file].splitlines()
    (number,) = (n for n, line in enumerate(lines, 1) if text in line)
    return f"{file}:{number}"


def passes(test: Path) -> bool:
    """Whether the test in a pytest file passes."""
    (function,) = (f for n, f in runpy.run_path(str(test)).items() if n.startswith("test_"))
    try:
        function()
    except (AssertionError, DeviceFault):
        return False
    return True


@pytest.fixture(params=["riscv32", "cortex-m4", "cortex-m0plus"])
def platform(request: pytest.FixtureRequest) -> str:
    """Each core in turn."""
    name: str = request.param
    return name
