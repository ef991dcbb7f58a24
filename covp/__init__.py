"""covp: simulation-first co-design of TinyML models, microcontrollers and accelerators.

Functions and classes are imported when they are first read, so that ``import covp`` costs nothing.
"""

from __future__ import annotations

import sys
from functools import cached_property
from types import ModuleType
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
    from covp.build.builder import compile
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

if not TYPE_CHECKING:  # type checkers have the imports above

    class _Package(ModuleType):
        """The names whose homes need numpy or a parser: reading one imports it."""

        def __dir__(self) -> list[str]:
            return sorted({*vars(self), *__all__})

        @cached_property
        def Platform(self) -> object:
            from covp.chip.platform_file import Platform

            return Platform

        @cached_property
        def Profile(self) -> object:
            from covp.runtime.profile import Profile

            return Profile

        @cached_property
        def Program(self) -> object:
            from covp.codegen.program import Program

            return Program

        @cached_property
        def Session(self) -> object:
            from covp.runtime.session import Session

            return Session

        @cached_property
        def compile(self) -> object:
            from covp.build.builder import compile

            return compile

        @cached_property
        def load_model(self) -> object:
            from covp.graph.models import load_model

            return load_model

        @cached_property
        def load_platform(self) -> object:
            from covp.chip.platform_file import load_platform

            return load_platform

        @cached_property
        def sweep(self) -> object:
            from covp.exploration.sweep.api import sweep

            return sweep

    sys.modules[__name__].__class__ = _Package
