"""covp: simulation-first co-design of TinyML models, microcontrollers and accelerators.

Functions and classes are imported when they are first read, so that ``import covp`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from covp.errors import (
    AcceleratorError,
    CapacityError,
    CovpError,
    DeviceError,
    DeviceFault,
    ModelError,
    PlatformError,
    ToolchainError,
    UsageError,
)

if TYPE_CHECKING:
    from covp.building.builder import compile
    from covp.chip.platform_file import Platform, load_platform
    from covp.codegen.program import Program
    from covp.exploration.sweep.api import sweep
    from covp.graph.models import load_model
    from covp.runtime.profile import Profile
    from covp.runtime.session import Session

__all__ = [
    "AcceleratorError",
    "CapacityError",
    "CovpError",
    "DeviceError",
    "DeviceFault",
    "ModelError",
    "Platform",
    "PlatformError",
    "Profile",
    "Program",
    "Session",
    "ToolchainError",
    "UsageError",
    "compile",
    "load_model",
    "load_platform",
    "sweep",
]

_HOMES = {
    "Platform": "covp.chip.platform_file",
    "Profile": "covp.runtime.profile",
    "Program": "covp.codegen.program",
    "Session": "covp.runtime.session",
    "compile": "covp.building.builder",
    "load_model": "covp.graph.models",
    "load_platform": "covp.chip.platform_file",
    "sweep": "covp.exploration.sweep.api",
}
"""The names whose modules need numpy or a parser, as imported above for type checkers."""


def __getattr__(name: str) -> object:
    """Import a name of `_HOMES` when it is first read (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'covp' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
