"""The benchmarks of MLPerf Tiny: what the host sends a board, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covp.codegen.program import Program
from covp.errors import ModelError, UsageError, near_misses
from covp.evaluation.data.tasks import TASKS


@dataclass(frozen=True)
class Benchmark:
    """One task of the benchmark suite.

    Attributes:
        name: what a board answers to ``profile``, e.g. "ic01".
        model: the zoo's name of the reference model.
        sources: the files of device_runtime/mlperf_tiny that turn the host's bytes into the input
            and the output into results.
        elements: of the reference model's input and output.
        input_bytes: what the host sends of each element of the input.
    """

    name: str
    model: str
    sources: tuple[str, ...]
    elements: tuple[int, int]
    input_bytes: int = 1


_SOURCES = {
    "image": ("image.c", "classes.c"),
    "features": ("features.c", "classes.c"),
    "spectrum": ("autoencoder.c",),
}
BENCHMARKS = {
    task.name: Benchmark(
        task.name, task.model, _SOURCES[task.kind], task.elements, task.element_bytes
    )
    for task in TASKS.values()
    if task.kind in _SOURCES
}
"""Benchmarks by name: the tasks whose samples the host sends."""


def find_benchmark(program: Program, name: str | None = None) -> Benchmark:
    """Return the benchmark that a model is for.

    Args:
        program: the compiled model.
        name: of the benchmark; by default that of the zoo's model of this name, else the first
            with inputs and outputs of these sizes.

    Raises:
        UsageError: no benchmark has this name, or none has these sizes.
        ModelError: the model cannot be run by the benchmark's firmware.
    """
    if name is not None:
        if name not in BENCHMARKS:
            raise UsageError(f"no benchmark {name!r}:", hint=near_misses(name, BENCHMARKS))
        found = BENCHMARKS[name]
    else:
        found = _guess(program)
    _check(program, found)
    return found


def _guess(program: Program) -> Benchmark:
    of_zoo = program.graph.source != "file"
    for benchmark in BENCHMARKS.values():
        if of_zoo and benchmark.model == program.graph.name:
            return benchmark
    sizes = tuple(int(np.prod(tensors[0].shape)) for tensors in (program.inputs, program.outputs))
    for benchmark in BENCHMARKS.values():
        if benchmark.elements == sizes:
            return benchmark
    if of_zoo and program.graph.name == "sww":
        raise UsageError("sww: the streaming wake word hears waves: name their folder with --card")
    known = ", ".join(f"{b.name} {b.elements[0]} to {b.elements[1]}" for b in BENCHMARKS.values())
    raise UsageError(
        f"{program.name}: no benchmark maps {sizes[0]} elements to {sizes[1]} ({known}); name one "
        "whose preparation of the input fits with --benchmark"
    )


def _check(program: Program, benchmark: Benchmark) -> None:
    """Check that the firmware can take the model: int8, with one input and one output."""
    tensors = (*program.inputs, *program.outputs)
    if len(program.inputs) != 1 or len(program.outputs) != 1:
        raise ModelError(
            f"{program.name}: {benchmark.name} takes a model with one input and one output, this "
            f"one has {len(program.inputs)} and {len(program.outputs)}"
        )
    for tensor in tensors:
        if tensor.dtype != np.int8 or tensor.quantization is None:
            raise ModelError(
                f"{program.name}: {tensor.name}: {benchmark.name} takes int8 models, this tensor "
                f"is {tensor.dtype.name}; quantize the model"
            )
    if program.states:
        raise ModelError(
            f"{program.name}: {benchmark.name} takes models without states; leave out "
            "--state and --streaming"
        )
    first, last = (int(np.prod(tensor.shape)) for tensor in tensors)
    if benchmark.name == "ad01" and first != last:
        raise ModelError(
            f"{program.name}: ad01 compares the output with the input, which have {last} and "
            f"{first} elements"
        )
