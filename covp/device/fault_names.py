"""`name_fault`: a fault with the names of its code."""

from __future__ import annotations

from covp.device.base import LowLevelDevice
from covp.errors import DeviceFault


def name_fault(fault: DeviceFault, device: LowLevelDevice) -> DeviceFault:
    """Add the symbol, source line and callers of its pc to a fault, where the device knows them."""
    names = device.abilities.names
    if names is not None and fault.pc is not None:
        fault.symbol, fault.source = names.locate(fault.pc)
        fault.call_stack = names.call_stack(fault.pc, fault.registers)
    return fault
