"""Layers alone on emulated cores, for benchmarks that set two forms of a layer side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covp.chip.platform_file import Platform
from covp.codegen.generate import generate
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.runtime.session import Session
from covp.testing import ConvCase

LAYERS = {
    "conv 3x3, 16 to 16, 32x32": ConvCase(
        "CONV_2D", size=(32, 32), channels=(16, 16), kernel=(3, 3), same=True, bias=True
    ),
    "conv 3x3, 64 to 64, 8x8": ConvCase(
        "CONV_2D", size=(8, 8), channels=(64, 64), kernel=(3, 3), same=True, bias=True
    ),
    "conv 3x3, 3 to 16, 32x32": ConvCase(
        "CONV_2D", size=(32, 32), channels=(3, 16), kernel=(3, 3), same=True, bias=True
    ),
    "conv 1x1, 64 to 64, 25x5": ConvCase(
        "CONV_2D", size=(25, 5), channels=(64, 64), kernel=(1, 1), bias=True
    ),
    "depthwise 3x3, 64, 25x5": ConvCase(
        "DEPTHWISE_CONV_2D", size=(25, 5), channels=(64, 64), kernel=(3, 3), same=True, bias=True
    ),
    "fully connected, 640 to 128": ConvCase("FULLY_CONNECTED", channels=(640, 128), bias=True),
}


class Measured(NamedTuple):
    """One inference of a layer."""

    instructions: int
    flash: int
    schedule: str


def measure(platform: Platform, graph: Graph, schedule: Schedule | None = None) -> Measured:
    """The layer with a schedule, or the kernel's own choice; the output is checked."""
    choice = None if schedule is None else (lambda op: schedule)
    program = generate(graph, platform, schedules=choice)
    inputs = random_inputs(graph.inputs, 1)
    with Session(platform) as session:
        empty = session.memory().flash_bytes
        loaded = session.load(program)
        output = loaded.run(*inputs)
        (layer,) = session.profile().layers
        flash = session.memory().flash_bytes - empty
    wanted = run_reference(graph, inputs)[0]
    assert np.array_equal(output, wanted), f"{graph.name} differs from the reference"
    return Measured(layer.instructions or 0, flash, layer.schedule)


def best(platform: Platform, graph: Graph, search: bool) -> Measured:
    """The default, or the least instructions of all schedules."""
    if not search:
        return measure(platform, graph)
    request = KernelRequest(graph.ops[0], platform.core, "layer")
    return min(measure(platform, graph, schedule) for schedule in schedules(request))
