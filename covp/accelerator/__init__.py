"""Accelerators: what a backend declares, how it is found, which layers it gets.

The public names are imported when they are first used: a compiler without accelerators needs no
hardware model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covp.accelerator.backend import AcceleratorBackend
    from covp.accelerator.call import (
        CCall,
        Constant,
        CoreKernel,
        RegisterImage,
        Requantize,
        TensorSlice,
        Workspace,
    )
    from covp.accelerator.declared import Accelerator
    from covp.accelerator.limits import Limit
    from covp.accelerator.parameters import Parameter
    from covp.accelerator.unit_parameters import TECHNOLOGY, TIMING, WAIT
    from covp.chip.energy.units import UnitArea, UnitEnergy
    from covp.hardware.job import Job, number, real, result, table, tensor
    from covp.hardware.job_timing import JobTiming, Traffic, UnitTiming

__all__ = [
    "TECHNOLOGY",
    "TIMING",
    "WAIT",
    "Accelerator",
    "AcceleratorBackend",
    "CCall",
    "Constant",
    "CoreKernel",
    "Job",
    "JobTiming",
    "Limit",
    "Parameter",
    "RegisterImage",
    "Requantize",
    "TensorSlice",
    "Traffic",
    "UnitArea",
    "UnitEnergy",
    "UnitTiming",
    "Workspace",
    "number",
    "real",
    "result",
    "table",
    "tensor",
]

_HOMES = {
    "covp.accelerator.backend": ("AcceleratorBackend",),
    "covp.accelerator.call": (
        "CCall",
        "Constant",
        "CoreKernel",
        "TensorSlice",
        "Requantize",
        "RegisterImage",
        "Workspace",
    ),
    "covp.accelerator.declared": ("Accelerator",),
    "covp.accelerator.limits": ("Limit",),
    "covp.accelerator.parameters": ("Parameter",),
    "covp.accelerator.unit_parameters": ("TECHNOLOGY", "TIMING", "WAIT"),
    "covp.chip.energy.units": ("UnitArea", "UnitEnergy"),
    "covp.hardware.job_timing": ("JobTiming", "Traffic", "UnitTiming"),
    "covp.hardware.job": ("Job", "number", "real", "result", "table", "tensor"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'covp.accelerator' has no attribute {name!r}")
