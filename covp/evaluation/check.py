"""`check_layers`: every layer's tensors on the device beside the reference's, over several inputs.

The layers run one by one on a device of their own, apart from the inference that is measured: in
the arena a later layer may take a tensor's place. Each input begins from the state after loading,
with an arena full of other values, so that nothing of an earlier inference can pass for a result.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.plural import pluralize
from covp.base.request import LEVELS, Level
from covp.building.builder import Build
from covp.codegen.program import Program, ProgramLayer, ProgramTensor
from covp.errors import UsageError, near_misses
from covp.evaluation.sample import Sample
from covp.evaluation.source import SourceCheck
from covp.graph.equality import differences, relative_error
from covp.graph.reference import run_changed_graph
from covp.runtime.devices import is_fast
from covp.runtime.hosted_graph import HostedGraph
from covp.runtime.session import Session

BY_LAYERS: tuple[Level, ...] = ("layers", "source")
"""Those that run the layers one by one."""
_FILL = bytes(np.random.default_rng(0x5EED).integers(0, 256, 251, np.uint8))
"""What the arena is filled with; its length, a prime, keeps rows from being alike."""


def default_level(device: str) -> Level:
    """Return the level of a device that none was given for.

    Layer by layer where that is a matter of tenths of a second, else the outputs alone.

    Args:
        device: as for `Session`.
    """
    return "layers" if is_fast(device) else "output"


def checked_level(level: str | None, device: str) -> Level:
    """Return a level from its name; None gives the device's default. Raises UsageError."""
    if level is None:
        return default_level(device)
    for known in LEVELS:
        if level == known:
            return known
    raise UsageError(f"there is no check {level!r}", hint=near_misses(level, LEVELS))


@dataclass(frozen=True)
class Mismatch:
    """The first tensor that is not as expected.

    Attributes:
        input: number of the input, from 1.
        input_name: what the input is.
        layer: that wrote the tensor; None: an output of the model as a whole.
        op, target: of the layer, see `ProgramLayer`; empty without a layer.
        tensor: its name.
        element: indices of its first wrong element.
        got, wanted: that element on the device and in the reference.
        wrong: how many elements are.
        elements: of the tensor.
    """

    input: int
    input_name: str
    layer: str | None
    op: str
    target: str
    tensor: str
    element: tuple[int, ...]
    got: float
    wanted: float
    wrong: int
    elements: int

    def __str__(self) -> str:
        where = f"layer {self.layer} ({self.op} on {self.target}), " if self.layer else ""
        return (
            f"{where}tensor {self.tensor}, input {self.input} ({self.input_name}): element "
            f"{list(self.element)} is {self.got:g}, not {self.wanted:g}; "
            f"{self.wrong:,} of {self.elements:,} differ"
        )


@dataclass(frozen=True)
class Check:
    """The extent of a comparison with the reference, and the first difference.

    Attributes:
        level: that was requested.
        layers: whose tensors were compared.
        inputs: inferences whose outputs were compared.
        seconds: host time of the comparison, the measured inference left out.
        worst_error: of floats, the largest as a share of its tensor's largest magnitude; None
            where all tensors are of integers.
        mismatch: None where everything is as expected.
        sanitized: every load and store was checked, and was allowed.
        ubsan: the C had the compiler's checks for undefined behaviour, and none failed.
        source: the same beside the model's file as it is; None where that was not wanted.
    """

    level: Level
    layers: int = 0
    inputs: int = 0
    seconds: float = 0.0
    worst_error: float | None = None
    mismatch: Mismatch | None = None
    sanitized: bool = False
    ubsan: bool = False
    source: SourceCheck | None = None

    @property
    def holds(self) -> bool:
        """True if nothing was found that no documented rule allows."""
        return self.mismatch is None and (self.source is None or self.source.holds)

    @property
    def amount(self) -> str:
        """Such as "13 layers x 4 inputs"."""
        inputs = pluralize(self.inputs, "input")
        return f"{pluralize(self.layers, 'layer') if self.layers else 'outputs'} x {inputs}"


def check_layers(
    build: Build,
    samples: Sequence[Sample],
    device: str = "virtual",
    sanitize: bool = False,
    ubsan: bool = False,
) -> Check:
    """Run a build layer by layer on each sample; the first difference ends it.

    Args:
        build: what runs.
        samples: inputs with the outputs of the model's graph, see `Sample.and_probes`.
        device: as for `Session`; a session of its own is opened on it.
        sanitize: check every load and store as well: a layer may access its own tensors, scratch
            memory and stack.
        ubsan: compile the C with the compiler's checks for undefined behaviour.

    Raises:
        CovpError: the device cannot be reached, or the program faulted.
    """
    start = time.perf_counter()
    found = _Comparison()
    with Session(
        build.platform, device, build.toolchain, strict=True, sanitize=sanitize, ubsan=ubsan
    ) as session:
        module = session.load(build.program, hosted=True)
        assert isinstance(module, HostedGraph)
        fresh = session.snapshot() if session.device.abilities.state is not None else None
        for sample in samples:
            if fresh is not None and found.inputs:
                session.restore(fresh)
            if not found.holds(module, sample):
                break
    return Check(
        "layers",
        len(found.layers),
        found.inputs,
        time.perf_counter() - start,
        found.worst_error,
        found.mismatch,
        sanitize,
        ubsan,
    )


class _Comparison:
    """The results so far."""

    def __init__(self) -> None:
        self.layers: set[str] = set()
        self.inputs = 0
        self.worst_error: float | None = None
        self.mismatch: Mismatch | None = None

    def holds(self, module: HostedGraph, sample: Sample) -> bool:
        """Run and compare one inference; return False at its first difference.

        Args:
            module: in a strict session.
            sample: inputs and what is expected.
        """
        self.inputs += 1
        wanted = lowered_tensors(module.program, sample)
        for layer, arrays in module.steps(*sample.inputs, fill=_FILL, states=sample.states):
            for tensor, got in zip(layer.outputs, arrays, strict=True):
                if tensor.name in wanted:
                    self.layers.add(layer.function)
                    self._compare(got, wanted[tensor.name], tensor, sample, layer)
            if self.mismatch is not None:
                return False
        pairs = zip(module.outputs(), sample.outputs, module.program.outputs, strict=True)
        for got, expected, tensor in pairs:
            self._compare(got, expected, tensor, sample)
        self._compare_states(module, sample, wanted)
        return self.mismatch is None

    def _compare_states(
        self, module: HostedGraph, sample: Sample, wanted: Mapping[str, NDArray[Any]]
    ) -> None:
        """Compare the states that the inference left for the next one.

        Args:
            wanted: of `lowered_tensors`.
        """
        states = module.program.lowered.states if module.program.lowered else ()
        after = {state.name: wanted[state.after.name] for state in states}
        found = module.states()
        for state in module.program.states:
            self._compare(found[state.name], after[state.name], state.tensor, sample)

    def _compare(
        self,
        got: NDArray[Any],
        wanted: NDArray[Any],
        tensor: ProgramTensor,
        sample: Sample,
        layer: ProgramLayer | None = None,
    ) -> None:
        wrong = differences(got, wanted)
        if wanted.dtype.kind == "f":
            self.worst_error = max(self.worst_error or 0.0, relative_error(got, wanted))
        if not wrong.size or self.mismatch is not None:
            return
        element = tuple(int(i) for i in np.unravel_index(wrong[0], wanted.shape))
        self.mismatch = Mismatch(
            input=self.inputs,
            input_name=sample.name,
            layer=layer.name if layer else None,
            op=layer.op if layer else "",
            target=layer.target if layer else "",
            tensor=tensor.name,
            element=element,
            got=got[element].item(),
            wanted=wanted[element].item(),
            wrong=wrong.size,
            elements=wanted.size,
        )


def lowered_tensors(program: Program, sample: Sample) -> dict[str, NDArray[Any]]:
    """Return the tensors that the program's layers write, by name, as the reference computes them.

    Args:
        program: with the graph whose operators its layers are.
        sample: inputs, and the tensors of the model's graph.
    """
    if program.lowered is None:
        return {}
    return run_changed_graph(
        program.lowered, sample.inputs, program.graph, sample.tensors, sample.states
    )


def output_check(
    build: Build, sample: Sample, outputs: Iterable[NDArray[Any]], seconds: float
) -> Check:
    """Return the check of a measured inference's outputs.

    Args:
        build: what ran.
        sample: its inputs and what is expected.
        outputs: of the device.
        seconds: host time of the comparison.
    """
    found = _Comparison()
    found.inputs = 1
    for got, wanted, tensor in zip(outputs, sample.outputs, build.program.outputs, strict=True):
        found._compare(got, wanted, tensor, sample)
    return Check("output", 0, 1, seconds, found.worst_error, found.mismatch)
