"""`check`: one layer on an accelerator against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.registry import find_backend
from covp.arguments import demand, shown
from covp.codegen.offload import demand_architecture
from covp.errors import CovpError, UsageError, WrongResult
from covp.graph.equality import differences
from covp.graph.reference import run_reference
from covp.hardware.custom_instruction import InstructionUnit
from covp.platform_file import Platform, load_platform
from covp.testing import Case
from covp.verify.bench import Bench, Outcome
from covp.verify.driver_bench import DriverBench
from covp.verify.program_bench import ProgramBench


def check(
    spec: str,
    case: Case,
    platform: str = "riscv32",
    toolchain: str = "zig",
    before: Case | None = None,
) -> None:
    """Run one layer on an accelerator: what the tests that `covp.verify.verify` prints do.

    Args:
        spec: a name, or ``path/to/file.py:Class``, each with parameters after a colon.
        case: the layer with its inputs, e.g. a `covp.testing.ConvCase`.
        platform: a name or the path of a YAML file.
        toolchain: "zig" or "gcc".
        before: a layer that runs before it on the same device.

    Raises:
        UsageError: the accelerator does not accept the layer.
        WrongResult: its outputs differ from the reference, or bytes around them were written.
        CapacityError: the layer does not fit the platform's memory.
        CovpError: anything else that goes wrong, a fault of the driver included.
    """
    demand("spec", spec, str, "an accelerator's name")
    if not (hasattr(case, "graph") and hasattr(case, "inputs")):
        raise UsageError(f"case must be a covp.testing.Case, not {shown(case)}")
    with open_bench(find_backend(spec), platform, toolchain) as bench:
        if run_case(bench, case, before).outputs is None:
            raise UsageError(f"accelerator {spec} does not accept this layer: {case!r}")


def run_case(bench: Bench, case: Case, before: Case | None = None) -> Outcome:
    """Run one layer on a fresh device and compare; then again, at another place and pace.

    Args:
        bench: with the accelerator.
        case: the layer with its inputs.
        before: a layer that runs before it on the same device.

    Returns:
        Of the latest run.

    Raises:
        WrongResult, CapacityError, CovpError: as `check`.
    """
    bench.begin()
    if before is not None:
        try:
            _run(bench, before, (1.0,))
        except CovpError:  # its own failure, to be found where it runs alone
            bench.begin()
    return _run(bench, case, (1.0, 0.1 if case.gap % 2 else 10.0))


def _run(bench: Bench, case: Case, paces: Sequence[float]) -> Outcome:
    """Run one layer on the device as it is, several times."""
    graph, inputs = case.graph(), case.inputs()
    wanted = latest = None
    for pace in paces:
        outcome = bench.run(graph, inputs, case.gap, pace)
        if outcome.outputs is None:
            return latest or outcome
        latest = outcome
        wanted = run_reference(graph, inputs) if wanted is None else wanted
        note = "" if pace == 1.0 else f" (its second run, on a unit that takes {pace:g} x the time)"
        _demand_right(bench.backend.name, outcome, wanted, note)
    return outcome


def _demand_right(name: str, outcome: Outcome, wanted: list[NDArray[Any]], note: str) -> None:
    if outcome.wrong:
        raise WrongResult(f"{name}: {outcome.wrong}{note}")
    assert outcome.outputs is not None
    for got, right in zip(outcome.outputs, wanted, strict=True):
        wrong = differences(got, right)
        if wrong.size:
            at = np.unravel_index(int(wrong[0]), right.shape)
            raise WrongResult(
                f"{name}: {wrong.size} of {right.size} elements differ from the reference, first "
                f"at {tuple(map(int, at))}: {got[at]} instead of {right[at]}{note}"
            )
    if outcome.damage:
        buffers = ", ".join(f"0x{a:08x}+{n}" for a, n in outcome.buffers)
        raise WrongResult(
            f"{name}: {len(outcome.damage)} bytes outside the output were written, first at "
            f"0x{outcome.damage[0]:08x}; buffers: {buffers}{note}"
        )


def open_bench(
    backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
) -> Bench:
    """The bench that fits an accelerator: on the bus or in the core.

    Args:
        backend: the accelerator.
        platform: a platform, its name or the path of its YAML file.
        toolchain: "zig" or "gcc".

    Raises:
        UsageError: it is for another architecture than the platform's core.
        ToolchainError: the driver does not compile, or warns.
    """
    platform = load_platform(platform)
    demand_architecture(backend, platform)
    if isinstance(new_peripheral(backend), InstructionUnit):
        return ProgramBench(backend, platform, toolchain)
    return DriverBench(backend, platform, toolchain)
