"""Sweeps: many models, platforms, accelerators and parameters; results that survive a kill.

`covp.sweep(...)` is `covp.sweep.api.sweep`: the module can be called, whatever of it was imported
before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run a sweep, see `covp.sweep.api.sweep`."""
        from covp.sweep.api import sweep

        return sweep(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
