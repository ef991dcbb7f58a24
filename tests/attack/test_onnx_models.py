"""Damaged ONNX models: a graph that can be compiled and computed, or a ModelError of one line."""

from __future__ import annotations

import resource
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from covp.codegen.generate import generate
from covp.errors import CovpError
from covp.graph.onnx import load_onnx
from covp.graph.random_inputs import random_inputs

from .onnx_mutations import damaged, models
from .test_models import LONGEST, no_hang

_MOST_MEMORY = 6 << 30


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """An allocation of many gigabytes raises, and fails the test, instead of succeeding lazily."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def _attack(seeds: range, folder: Path) -> tuple[int, int]:
    """How many were rejected, and how many became programs."""
    rejected = compiled = 0
    bases, path, wrong = models(), folder / "net.onnx", []
    for seed in seeds:
        path.write_bytes(damaged(seed, bases))
        with no_hang(seed), warnings.catch_warnings():
            warnings.simplefilter("error")  # the command line would print them
            try:
                program = generate(load_onnx(path), "riscv32")
                if sum(t.nbytes for t in program.graph.tensors()) < 1 << 20:
                    program.reference(random_inputs(program.graph.inputs, seed))
                compiled += 1
            except CovpError as error:
                rejected += 1
                if "\n" in str(error) or len(str(error)) > LONGEST:
                    wrong.append(f"seed {seed}: {error}")
            except Exception as error:
                wrong.append(f"seed {seed}: {error!r}")
    assert not wrong, "\n".join(wrong)
    return rejected, compiled


@pytest.mark.usefixtures("_little_memory")
def test_damaged_models(tmp_path: Path) -> None:
    rejected, compiled = _attack(range(300), tmp_path)
    assert rejected > 100 and compiled > 30


@pytest.mark.slow
@pytest.mark.usefixtures("_little_memory")
def test_two_thousand_damaged_models(tmp_path: Path) -> None:
    rejected, compiled = _attack(range(10_000, 12_000), tmp_path)
    assert rejected > 700 and compiled > 200
