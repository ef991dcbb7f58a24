"""`recorded_schedules`: the tuner's records as choices for `covp.compile`."""

from __future__ import annotations

from covp.codegen.compile import ScheduleChoice
from covp.platform_file import Platform
from covp.toolchain import get_toolchain
from covp.tune.records import Objective, Records


def recorded_schedules(
    platform: Platform,
    toolchain: str = "zig",
    optimize: Objective = "speed",
    device: str = "virtual",
    max_scratch: int | None = None,
) -> ScheduleChoice:
    """The best recorded schedule of each operator. The records are read once, here.

    Args:
        platform: whose core the schedules are for.
        toolchain: "zig" or "gcc"; records are of one compiler.
        optimize: which of the tuned schedules to take.
        device: as for `Session`; trials on that kind of device count first.
        max_scratch: bytes of working memory that a layer's schedule may take; None for no limit.
            A layer without such a record gets the kernel's own choice, whatever that takes.

    Raises:
        ToolchainError: the toolchain is not installed.
        CovpError: a file of records is damaged.
    """
    kind = device.partition(":")[0]
    records = Records.available()
    compiler = get_toolchain(toolchain, platform.core).version
    return lambda op: records.schedule(op, platform.core, compiler, optimize, kind, max_scratch)
