"""covp: simulation-first co-design of TinyML models, microcontrollers and accelerators.

The public names are imported when they are first used, so that ``import covp`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covp.chip.platform_file import Platform, load_platform
    from covp.codegen.program import Program
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
    from covp.evaluation.builder import compile
    from covp.evaluation.sweep.api import sweep
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
    "compile": "covp.evaluation.builder",
    "load_model": "covp.graph.models",
    "load_platform": "covp.chip.platform_file",
    "sweep": "covp.evaluation.sweep.api",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'covp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES.get(name, "covp.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
