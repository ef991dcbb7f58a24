"""`check`: one layer on an accelerator against the reference."""

from __future__ import annotations

import numpy as np

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.registry import find_backend
from covp.codegen.offload import demand_architecture
from covp.errors import UsageError, WrongResult
from covp.graph.equality import differences
from covp.graph.reference import run_reference
from covp.hardware.custom_instruction import InstructionUnit
from covp.platform_file import Platform, load_platform
from covp.testing import Case
from covp.verify.bench import Bench
from covp.verify.driver_bench import DriverBench
from covp.verify.program_bench import ProgramBench


def check(spec: str, case: Case, platform: str = "riscv32", toolchain: str = "zig") -> None:
    """Run one layer on an accelerator: what the tests that `covp.verify.verify` prints do.

    Args:
        spec: a name, or ``path/to/file.py:Class``, each with parameters after a colon.
        case: the layer with its inputs, e.g. a `covp.testing.ConvCase`.
        platform: a name or the path of a YAML file.
        toolchain: "zig" or "gcc".

    Raises:
        UsageError: the accelerator does not accept the layer.
        WrongResult: its outputs differ from the reference, or bytes around them were written.
        CapacityError: the layer does not fit the platform's memory.
        CovpError: anything else that goes wrong, a fault of the driver included.
    """
    with open_bench(find_backend(spec), platform, toolchain) as bench:
        if not run_case(bench, case):
            raise UsageError(f"accelerator {spec} does not accept this layer: {case!r}")


def run_case(bench: Bench, case: Case) -> bool:
    """Run one layer and compare.

    Args:
        bench: with the accelerator.
        case: the layer with its inputs.

    Returns:
        Whether the accelerator accepted it.

    Raises:
        WrongResult, CapacityError, CovpError: as `check`.
    """
    graph, inputs = case.graph(), case.inputs()
    outcome = bench.run(graph, inputs, case.gap)
    if outcome.outputs is None:
        return False
    name = bench.backend.name
    for got, wanted in zip(outcome.outputs, run_reference(graph, inputs), strict=True):
        wrong = differences(got, wanted)
        if wrong.size:
            at = np.unravel_index(int(wrong[0]), wanted.shape)
            raise WrongResult(
                f"{name}: {wrong.size} of {wanted.size} elements differ from the reference, first "
                f"at {tuple(map(int, at))}: {got[at]} instead of {wanted[at]}"
            )
    if outcome.damage:
        buffers = ", ".join(f"0x{a:08x}+{n}" for a, n in outcome.buffers)
        raise WrongResult(
            f"{name}: {len(outcome.damage)} bytes outside the output were written, first at "
            f"0x{outcome.damage[0]:08x}; buffers: {buffers}"
        )
    return True


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
