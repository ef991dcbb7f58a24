"""covp: simulation-first co-design of TinyML models, microcontrollers and accelerators.

The public names are imported when they are first used, so that ``import covp`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import covp.renamed  # noqa: F401  (finds modules by their old names)

if TYPE_CHECKING:
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
    from covp.models import load_model
    from covp.platform_file import Platform, load_platform
    from covp.program import Program
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
    "Platform": "covp.platform_file",
    "Profile": "covp.runtime.profile",
    "Program": "covp.program",
    "Session": "covp.runtime.session",
    "compile": "covp.evaluation.builder",
    "load_model": "covp.models",
    "load_platform": "covp.platform_file",
}
_CALLED = frozenset({"sweep"})
"""Subpackages that are called like functions."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'covp' has no attribute {name!r}")
    if name in _CALLED:
        return importlib.import_module(f"covp.{name}")
    value = getattr(importlib.import_module(_HOMES.get(name, "covp.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
