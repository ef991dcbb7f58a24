"""The accelerators of a program on a device: models on its bus, instructions of its core."""

from __future__ import annotations

from covp.codegen.program import AcceleratorInstance
from covp.device.abilities import HostsHardware
from covp.hardware.custom_instruction import InstructionUnit


def attach_accelerator(hardware: HostsHardware, accelerator: AcceleratorInstance) -> None:
    """Put a new model on the bus, or give the core the unit's instructions.

    Raises:
        AcceleratorError: the backend gives no model.
        PlatformError, DeviceError: its addresses, interrupt line or instructions are taken.
    """
    model = accelerator.make()
    if isinstance(model, InstructionUnit):
        hardware.add_instructions(accelerator.name, model.instructions, model.code)
    else:
        hardware.attach(model, accelerator.base, accelerator.name, accelerator.irq)


def detach_accelerator(hardware: HostsHardware, accelerator: AcceleratorInstance) -> None:
    """Take away what `attach_accelerator` put there."""
    if accelerator.name in hardware.peripherals:
        hardware.detach(accelerator.name)
    else:
        hardware.remove_instructions(accelerator.name)
