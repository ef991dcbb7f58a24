"""Parameters that most units with jobs have: of the timing model, the wait, the technology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from covp.accelerator.parameters import Parameter
from covp.chip.energy.technology import NONE, component_file, technology_names
from covp.hardware.job_timing import UnitTiming

_LARGEST = {
    "macs_per_cycle": (1, 1 << 20, "multiply-accumulates a cycle"),
    "bytes_per_cycle": (1, 1 << 10, "bytes a cycle through the memory port"),
    "startup_cycles": (0, 1 << 20, "cycles from the start bit to the first operation"),
    "contention": (0, 100, "cycles waited for the bus for each cycle on it"),
    "clock_ratio": (0.01, 1000, "cycles of the core for each cycle of the unit"),
}
TIMING = tuple(
    Parameter(name, getattr(UnitTiming, name), text, least, most, timing=True)
    for name, (least, most, text) in _LARGEST.items()
)
"""Parameters of the default timing model, `covp.hardware.job_timing.UnitTiming`."""

WAIT = Parameter(
    "wait", "poll", "how the driver waits: poll STATUS, or WFI until the interrupt",
    choices=("poll", "sleep"),
)  # fmt: skip

TECHNOLOGY = Parameter(
    "technology", NONE, "whose figures energy and area are estimated with, or a component file",
    choices=technology_names(), other=component_file,
)  # fmt: skip


def unit_timing(values: Mapping[str, Any]) -> UnitTiming:
    """Return the timing model with an accelerator's values, and defaults for those it lacks."""
    names = {field.name for field in fields(UnitTiming)}
    return UnitTiming(**{name: value for name, value in values.items() if name in names})
