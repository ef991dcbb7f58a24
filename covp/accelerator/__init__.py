"""Accelerators: what a backend declares, how it is found, which layers it gets."""

from covp.accelerator.backend import AcceleratorBackend, TimingCheck
from covp.accelerator.call import (
    CCall,
    Constant,
    CoreKernel,
    RegisterImage,
    Requantize,
    TensorSlice,
    Workspace,
)
from covp.accelerator.core_unit import CoreUnit
from covp.accelerator.declared import TECHNOLOGY, TIMING, WAIT, Accelerator
from covp.accelerator.limits import Limit
from covp.accelerator.parameters import Parameter
from covp.accelerator.rtl.peripheral import RtlPeripheral
from covp.accelerator.rtl.sources import UnitRtl
from covp.accelerator.tiled.accelerator import TiledAccelerator
from covp.accelerator.tiled.nest import Tile
from covp.chip.energy.units import UnitArea, UnitEnergy
from covp.hardware.custom_instruction import CustomInstruction
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
    "CoreUnit",
    "CustomInstruction",
    "Job",
    "JobTiming",
    "Limit",
    "Parameter",
    "RegisterImage",
    "Requantize",
    "RtlPeripheral",
    "TensorSlice",
    "Tile",
    "TiledAccelerator",
    "TimingCheck",
    "Traffic",
    "UnitArea",
    "UnitEnergy",
    "UnitRtl",
    "UnitTiming",
    "Workspace",
    "number",
    "real",
    "result",
    "table",
    "tensor",
]
