"""`check`: one layer on an accelerator against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.registry import find_backend
from covp.base.arguments import demand, shown
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.offload import demand_architecture
from covp.errors import CovpError, UsageError, WrongResult
from covp.graph.equality import differences
from covp.graph.reference import run_reference
from covp.hardware.custom_instruction import InstructionUnit
from covp.testing import Case
from covp.testing.verify.bench import Conditions, LayerOutcome, VerifyBench
from covp.testing.verify.chain import sibling
from covp.testing.verify.driver_bench import DriverBench
from covp.testing.verify.life import life
from covp.testing.verify.program_bench import ProgramBench


def check(
    spec: str,
    case: Case,
    platform: str = "riscv32",
    toolchain: str = "zig",
    before: Case | Sequence[Case] | None = None,
    cycles: int | None = None,
    calls: int | None = None,
) -> None:
    """Run one layer on an accelerator: what the tests that `covp.testing.verify.verify` prints do.

    Args:
        spec: a name, or ``path/to/file.py:Class``, each with parameters after a colon.
        case: the layer with its inputs, e.g. a `covp.testing.ConvCase`.
        platform: a name or the path of a YAML file.
        toolchain: "zig" or "gcc".
        before: a layer that runs before it on the same device, or several in their order.
        cycles: that each job of a unit on the bus takes, in place of its model's time.
        calls: of this layer and those before it in turn, on one device, see
            `covp.testing.verify.life`.

    Raises:
        UsageError: the accelerator does not accept the layer.
        WrongResult: its outputs differ from the reference, or bytes around them were written.
        CapacityError: the layer does not fit the platform's memory.
        CovpError: anything else that goes wrong, a fault of the driver included.
    """
    demand("spec", spec, str, "an accelerator's name")
    if not (hasattr(case, "graph") and hasattr(case, "inputs")):
        raise UsageError(f"case must be a covp.testing.Case, not {shown(case)}")
    earlier = () if before is None else before if isinstance(before, Sequence) else (before,)
    with open_bench(find_backend(spec), platform, toolchain) as bench:
        driver = driver_of(bench)
        if calls is not None and driver is not None:
            wrong = life(driver, [case, *earlier], calls)
            if wrong is not None:
                raise WrongResult(f"{bench.backend.name}: {wrong}")
            return
        if cycles is not None:
            bench.begin()
            for skips, halves in product((True, False), repeat=2):
                conditions = Conditions(case.gap, cycles=cycles, skips=skips, halves=halves)
                outcome = run_once(bench, case, conditions)
        else:
            outcome = run_case(bench, case, earlier)
        if outcome.outputs is None:
            raise UsageError(f"accelerator {spec} does not accept this layer: {case!r}")


def run_case(
    bench: VerifyBench, case: Case, before: Sequence[Case] = (), fresh: bool = True
) -> LayerOutcome:
    """Run one layer and compare; then again, with other values, at another place and pace.

    Args:
        bench: with the accelerator.
        case: the layer with its inputs.
        before: layers that run before it on the same device.
        fresh: begin with a device that has run nothing yet, else as it is.

    Returns:
        Of the latest run.

    Raises:
        WrongResult, CapacityError, CovpError: as `check`.
    """
    if fresh:
        bench.begin()
    for earlier in before:
        try:
            _run_twice(bench, earlier)
        except CovpError:  # its own failure, to be found where it runs alone
            bench.begin()
    return _run_twice(bench, case)


def _run_twice(bench: VerifyBench, case: Case) -> LayerOutcome:
    """Run in usual conditions and, with other values, in unusual ones."""
    first = run_once(bench, case, Conditions(case.gap))
    if first.outputs is None:
        return first
    second = run_once(bench, sibling(case), _unusual(case))
    return first if second.outputs is None else second


def _unusual(case: Case) -> Conditions:
    """Return conditions that differ with the layer's gap and seed."""
    drawn = crc32(f"{case.gap} {getattr(case, 'seed', 0)}".encode())
    return Conditions(
        gap=case.gap,
        pace=0.1 if drawn & 1 else 10.0,
        last=None if drawn >> 1 & 3 == 0 else drawn >> 16,
        apart=drawn >> 3 & 3 != 0,
        far=drawn >> 5 & 0xF,
        halves=bool(drawn >> 9 & 1),
        wakes=bool(drawn >> 10 & 1),
        masked=bool(drawn >> 11 & 1),
    )


def run_once(bench: VerifyBench, case: Case, conditions: Conditions) -> LayerOutcome:
    """Run one layer on the device as it is, and compare.

    Args:
        bench: with the accelerator.
        case: the layer with its inputs.
        conditions: places of the buffers and time of the unit.

    Raises:
        WrongResult, CapacityError, CovpError: as `check`.
    """
    graph, inputs = case.graph(), case.inputs()
    outcome = bench.run(graph, inputs, conditions)
    if outcome.outputs is not None:
        wanted = run_reference(graph, inputs)
        how = str(conditions)
        _demand_right(bench.backend.name, outcome, wanted, f" ({how})" if how else "")
    return outcome


def _demand_right(name: str, outcome: LayerOutcome, wanted: list[NDArray[Any]], note: str) -> None:
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
) -> VerifyBench:
    """Return the bench that fits an accelerator: on the bus or in the core.

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


def driver_of(bench: VerifyBench) -> DriverBench | None:
    """Return the part of a bench that calls driver functions, or None."""
    if isinstance(bench, ProgramBench):
        return bench.calls
    return bench if isinstance(bench, DriverBench) else None
