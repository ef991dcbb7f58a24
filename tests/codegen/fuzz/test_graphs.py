"""Random graphs as whole programs: the code between the layers, the arena and the passes too.

Each graph goes through a .tflite file. The generated C of several kinds of cores runs natively
under the undefined-behaviour sanitizer and on the emulated cores, from an arena full of noise;
outputs are those of covp's reference, which is compared with LiteRT on graphs of their own.

    pytest -n 0 -s -m slow tests/codegen/fuzz/test_graphs.py    prints how many graphs and layers
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

import covp
from covp.chip.cores import Core
from covp.chip.platform_file import load_platform
from covp.codegen.generate import generate
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.program import Program
from covp.codegen.schedule import Schedule
from covp.compilers.toolchain import UNDEFINED_BEHAVIOUR_FLAGS
from covp.errors import DeviceFault, ModelError
from covp.graph.equality import differences
from covp.graph.graph import Graph, Op
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.module import Module
from covp.runtime.session import Session
from covp.testing.contents import Content
from covp.testing.tensors import filled

from .batch import HOST_INCLUDE, combined
from .graphs import random_graph
from .test_fuzz import ACCELERATORS, PLATFORMS, on_host

Array = NDArray[Any]
_INCLUDE = re.compile(r'#include "[^"]*"\n')
_AT_ONCE = 8
"""Graphs that are compiled as one C file."""


@dataclass
class Report:
    """What became of some graphs."""

    graphs: int = 0
    layers: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    rejected: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.graphs} graphs, {self.layers} layers of {len(self.kinds)} kinds, "
            f"{len(self.rejected)} rejected, {len(self.failures)} reports"
        )


def through_a_file(seed: int, as_litert: bool = False) -> Graph:
    graph = read_tflite(write_tflite(random_graph(seed, as_litert)))
    graph.name = f"g{seed}"
    return graph


def inputs_of(graph: Graph, seed: int) -> list[Array]:
    contents: tuple[Content, ...] = ("random", "random", "random", "extreme", "lowest", "highest")
    return [filled(t, seed + i, contents[seed % 6]) for i, t in enumerate(graph.inputs)]


@dataclass(frozen=True)
class AnySchedule:
    """Of each layer's schedules one at random; the default where the seed is even."""

    core: Core
    seed: int

    def __call__(self, op: Op) -> Schedule | None:
        found = schedules(KernelRequest(op, self.core, "layer"))
        if self.seed % 2 == 0 or not found:
            return None
        return found[(self.seed + 7 * op.index) % len(found)]


def fuzzed(
    session: Session, platforms: Sequence[str], seeds: Sequence[int], flags: Sequence[str] = ()
) -> Report:
    """Compile the graphs of these seeds for one of the platforms each, and run them here."""
    report = Report()
    for first in range(0, len(seeds), _AT_ONCE):
        programs = []
        for seed in seeds[first : first + _AT_ONCE]:
            platform = load_platform(platforms[seed // 2 % len(platforms)])
            try:
                graph = through_a_file(seed)
                chosen = AnySchedule(platform.core, seed)
                programs.append((seed, generate(graph, platform, schedules=chosen)))
            except ModelError as error:
                report.rejected.append(f"{seed}: {error}")
        run_together(session, programs, flags, report)
    return report


def host_session() -> Session:
    """With a stack for code that is not optimized."""
    return Session(structs.replace(load_platform("host"), stack="64K"), device="host", timeout=60)


def run_together(
    session: Session, programs: list[tuple[int, Program]], flags: Sequence[str], report: Report
) -> None:
    """Compile the C of programs of different names in one go and run each."""
    texts = [
        _INCLUDE.sub("", text)
        for _, program in programs
        for name, text in sorted(program.sources.items(), key=lambda item: item[0][-1:] != "h")
    ]
    include = [HOST_INCLUDE] if session.platform.core.architecture == "x86" else []
    options = tuple(flags)
    module = session.load_c(combined(texts), flags=options, include=include)
    for seed, program in programs:
        inputs = inputs_of(program.graph, seed)
        report.graphs += 1
        report.layers += len(program.layers)
        report.kinds.update(layer.op for layer in program.layers)
        try:
            outputs = _infer(session, module, program, inputs, seed)
        except DeviceFault as error:
            report.failures.append(f"seed {seed} for {program.platform.name}: {error}")
            continue
        report.failures += wrong(program, outputs, inputs, seed)
    module.unload()


def wrong(
    program: Program, outputs: Sequence[Array], inputs: Sequence[Array], seed: int
) -> list[str]:
    wanted = program.reference(inputs)
    return [
        f"seed {seed} for {program.platform.name}: {tensor.name} is wrong"
        for tensor, got, value in zip(program.outputs, outputs, wanted, strict=True)
        if differences(np.asarray(got).reshape(value.shape), value).size
    ]


def _infer(
    session: Session, module: Module, program: Program, inputs: Sequence[Array], seed: int
) -> list[Array]:
    arena = module.address(program.arena_symbol)
    session.write(arena, np.random.default_rng(seed).bytes(program.arena_bytes))
    for tensor, value in zip(program.inputs, inputs, strict=True):
        session.write(arena + tensor.offset, value.tobytes())
    session.call(module.image.elf.symbols[program.run_function].value, arena)
    return [
        np.frombuffer(session.read(arena + t.offset, t.nbytes), t.dtype).reshape(t.shape)
        for t in program.outputs
    ]


def under_the_sanitizer(seeds: Sequence[int]) -> Report:
    with host_session() as session:
        # -O0: no check is optimized away, and the compiler takes a seventh of the time
        flags = (*UNDEFINED_BEHAVIOUR_FLAGS, "-O0")
        return fuzzed(session, ["host", *PLATFORMS], seeds, flags)


@pytest.mark.costly
@on_host
def test_random_graphs_have_no_undefined_behaviour() -> None:
    report = under_the_sanitizer(range(16))
    assert not report.failures and report.graphs > 12, report.failures


@pytest.mark.slow
@on_host
def test_two_thousand_graphs_without_undefined_behaviour() -> None:
    report = under_the_sanitizer(range(1000, 3000))
    print(f"\nunder the sanitizer: {report}; rejected: {report.rejected[:5]}")
    assert not report.failures, "\n".join(report.failures)
    assert report.graphs > 1900


@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "toolchain"),
    [*((name, "zig") for name in PLATFORMS), ("cortex-m4", "gcc"), ("riscv32", "gcc")],
)
def test_random_graphs_on_every_core(name: str, toolchain: str) -> None:
    with Session(name, toolchain=toolchain, timeout=60) as session:
        report = fuzzed(session, [name], range(4))
    assert not report.failures and report.graphs > 2, report.failures


@pytest.mark.slow
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("name", [*PLATFORMS, "cortex-m33", "riscv32f", "mps3-an547"])
def test_hundreds_of_graphs_on_every_core(name: str, toolchain: str) -> None:
    with Session(name, toolchain=toolchain, timeout=60) as session:
        report = fuzzed(session, [name], range(5000, 5150))
    print(f"\n{name} {toolchain}: {report}")
    assert not report.failures, "\n".join(report.failures)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("accelerator", "platform"), [("gemm+vector", "cortex-m4"), ("qconv2d", "cortex-m0plus")]
)
def test_random_graphs_on_accelerators(accelerator: str, platform: str) -> None:
    accelerated(accelerator, platform, range(2))


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
@pytest.mark.parametrize("accelerator", [*ACCELERATORS, "gemm+vector+dma"])
def test_dozens_of_graphs_on_every_accelerator(accelerator: str, platform: str) -> None:
    if accelerator == "cfu" and platform != "riscv32":
        pytest.skip("it is an instruction of RISC-V")
    accelerated(accelerator, platform, range(7000, 7030))


def accelerated(names: str, platform: str, seeds: Sequence[int]) -> None:
    """Whatever the units accept is theirs, though the core be faster."""
    failures = []
    for seed in seeds:
        graph = through_a_file(seed)
        inputs = inputs_of(graph, seed)
        program = covp.compile(
            graph, platform, names.split("+"), allow_unused=True, allow_slower=True
        )
        with Session(platform, timeout=60) as session:
            outputs = session.load(program).run(*inputs)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        failures += wrong(program, outputs, inputs, seed)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_reference_of_graphs_is_litert(litert: Any, count: int) -> None:
    compared = 0
    for seed in range(count, 2 * count):
        data = write_tflite(random_graph(seed, as_litert=True))
        graph = read_tflite(data)
        inputs = inputs_of(graph, seed)
        try:
            theirs = litert(data, inputs)
        except RuntimeError:  # it rejects some extreme scales
            continue
        compared += 1
        for tensor, got, wanted in zip(
            graph.outputs, run_reference(graph, inputs), theirs, strict=True
        ):
            assert differences(got, wanted).size == 0, (seed, tensor.name)
    assert compared > count // 2
