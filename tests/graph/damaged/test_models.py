"""Damaged models: a graph that runs as its reference says, or a ModelError of one short line."""

import random
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from covp.codegen.generate import generate
from covp.codegen.program import Program
from covp.compilers.toolchain import UNDEFINED_BEHAVIOUR_FLAGS
from covp.errors import CovpError
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from tests.codegen.fuzz.graphs import random_graph
from tests.codegen.fuzz.test_fuzz import PLATFORMS, on_host
from tests.codegen.fuzz.test_graphs import Report, host_session, run_together

from .mutations import damaged_file, damaged_graph

HANGS_AFTER = 20
"""Seconds; reading and generating C take a few hundredths of one."""
LONGEST = 700
"""Characters of a message."""


@dataclass
class Survivors:
    """What became of damaged files."""

    files: int = 0
    refused: int = 0
    programs: list[tuple[int, Program]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@contextmanager
def no_hang(seed: int) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"seed {seed}: not done after {HANGS_AFTER} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damaged(seed: int) -> bytes | None:
    """A damaged file; None where the mutation has no place in the format."""
    rng, graph = random.Random(seed), random_graph(seed % 500)
    if seed % 2 == 0:
        return damaged_file(rng, write_tflite(graph))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return damaged_graph(rng, graph)
    except Exception:  # the writer trusts its graph
        return None


def used(graph: Graph, seed: int) -> Program:
    """Its C, and its reference with values."""
    graph.name = f"g{seed}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the command line would print them
        program = generate(graph, PLATFORMS[seed // 2 % len(PLATFORMS)])
        program.reference(random_inputs(graph.inputs, seed))
    return program


def attack(seeds: range) -> Survivors:
    found = Survivors()
    for seed in seeds:
        data = damaged(seed)
        if data is None:
            continue
        found.files += 1
        with no_hang(seed):
            try:
                found.programs.append((seed, used(read_tflite(data), seed)))
            except CovpError as error:
                found.refused += 1
                text = str(error)
                if "\n" in text or len(text) > LONGEST:
                    found.errors.append(f"seed {seed}: {text}")
            except Exception as error:
                found.errors.append(f"seed {seed}: {error!r}")
    assert not found.errors, "\n".join(found.errors)
    return found


def run(programs: list[tuple[int, Program]]) -> Report:
    report = Report()
    with host_session() as session:
        for first in range(0, len(programs), 8):
            flags = (*UNDEFINED_BEHAVIOUR_FLAGS, "-O0")
            run_together(session, programs[first : first + 8], flags, report)
    return report


@pytest.mark.costly
@on_host
def test_damaged_models() -> None:
    found = attack(range(200))
    assert found.refused > 100 and len(found.programs) > 10
    report = run(found.programs[:8])
    assert not report.failures, report.failures


@pytest.mark.slow
@on_host
def test_five_thousand_damaged_models() -> None:
    found = attack(range(10_000, 15_000))
    print(f"\n{found.files} files, {found.refused} refused, {len(found.programs)} compile")
    report = run(found.programs)
    print(report)
    assert not report.failures, "\n".join(report.failures)
