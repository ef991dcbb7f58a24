"""One emulated core on Unicorn.

What hardware authors use moved to `covp.hardware`; the old names still work, with a warning.
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

_MOVED = frozenset(
    ("arithmetic", "bus", "clock", "declared_unit", "job", "job_unit", "peripheral", "registers")
)


class _Moved(MetaPathFinder, Loader):
    """Imports ``covp.machine.NAME`` as ``covp.hardware.NAME``: one module under two names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if package != __name__ or module not in _MOVED:
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = spec.name.replace(".machine.", ".hardware.")
        warnings.warn(f"{spec.name} is {new} now", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was executed under its new name, which it keeps."""
        module.__spec__ = self._spec


sys.meta_path.append(_Moved())
