"""Names of version 0.1 that users' accelerators may have: they work, with a DeprecationWarning.

Modules only: a class or function that was renamed as well is found through its old module. To be
removed with version 0.3.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MODULES: dict[str, tuple[str, ...]] = {
    "covp.codegen.program": ("covp.program",),
    "covp.graph.resolved": ("covp.graph.typed_convolution",),
    "covp.machine.arithmetic": ("covp.hardware.arithmetic",),
    "covp.machine.bus": ("covp.hardware.bus",),
    "covp.machine.clock": ("covp.hardware.clock",),
    "covp.machine.declared_unit": ("covp.hardware.declared_unit",),
    "covp.machine.interrupts": ("covp.hardware.interrupt", "covp.machine.riscv_interrupts"),
    "covp.machine.job": ("covp.hardware.job",),
    "covp.machine.job_unit": ("covp.hardware.job_unit", "covp.hardware.job_timing"),
    "covp.machine.peripheral": ("covp.hardware.peripheral", "covp.hardware.peripheral_models"),
    "covp.machine.registers": ("covp.hardware.registers",),
    "covp.machine.svd": ("covp.hardware.svd",),
    "covp.machine.symbols": ("covp.symbols",),
}
_NAMES = {"Part": "TensorSlice", "Words": "RegisterImage", "Work": "JobTiming"}


def new_name(name: str, where: str) -> str | None:
    """The present name of a renamed class, with a warning; None where it was not renamed."""
    if name not in _NAMES:
        return None
    warnings.warn(f"{where}.{name} is {_NAMES[name]} now", DeprecationWarning, stacklevel=3)
    return _NAMES[name]


class _OldModule(ModuleType):
    """A module under its old name: everything is looked up in the modules that took its place."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            present = _NAMES.get(name, name)
            for place in map(importlib.import_module, _MODULES[self.__name__]):
                if hasattr(place, present):
                    return getattr(place, present)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _MODULES:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        places = " and ".join(_MODULES[spec.name])
        warnings.warn(f"{spec.name} is {places} now", DeprecationWarning, stacklevel=2)
        return _OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


sys.meta_path.append(_Finder())
