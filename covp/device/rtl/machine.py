"""`RtlMachine`: a core's RTL with memory, clock and the Python models of hardware on its bus.

`RtlInstructions` are units of custom instructions on a core's port for them.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from covp.chip.platform_file import Platform
from covp.device.machine.instruction_code import (
    CustomUnit,
    find_unit,
    make_custom_unit,
    raise_error,
)
from covp.device.rtl.cores import RtlCore
from covp.device.rtl.model import RtlEvent, RtlModel
from covp.errors import AcceleratorError, CovpError, DeviceError, DeviceFault
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock, ClockState
from covp.hardware.custom_instruction import CustomInstruction, InstructionCode
from covp.hardware.interrupt import InterruptLine
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_map import PAGE, PeripheralMap, nothing_at
from covp.hardware.shared_port import SharedPort

_BATCH = 100_000
"""Cycles between two looks at the time limit and Ctrl-C: about a tenth of a second."""
_LONGEST_WAKE = 16
"""Cycles in which a core notices an interrupt; synchronizers of its input take some."""
_NEVER = (1 << 64) - 1
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class RtlState:
    """The content of an `RtlMachine.save_state`; opaque. Between executions a core has none."""

    memories: tuple[NDArray[np.uint8], ...]
    clock: ClockState
    cycle: int
    peripherals: dict[str, object]


class _Lines:
    """All interrupt request lines together are the core's external interrupt."""

    def __init__(self, model: RtlModel) -> None:
        self._model, self._high = model, set[int]()

    def set_line(self, number: int, level: bool) -> None:
        """Set the level of an interrupt line."""
        (self._high.add if level else self._high.discard)(number)
        self._model.state.irq = bool(self._high)


class RtlMachine:
    """The simulation and the parts around it that are Python.

    The clock counts the cycles of executions. A model that lets time pass in an access (waits)
    stalls the bus's answer by that time; while the core sleeps, time is skipped.

    Args:
        platform: memory map and clock.
        model: the core.
        memories: the same that the model has.

    Attributes:
        clock, bus, shared: the parts.
    """

    def __init__(self, platform: Platform, model: RtlModel, memories: Sequence[Memory]) -> None:
        self.model, self._memories = model, memories
        self._stall: int | None = None
        self.clock = Clock(
            lambda: model.state.cycle + (self._stall or 0),
            self._skip,
            platform.clock_hz,
            self._limit,
            self._phase,
        )
        self.bus = Bus(memories, "host", lambda address, size: None)
        self.shared = PeripheralMap(memories, self.bus, self.clock, SharedPort.of(platform))
        self._lines = _Lines(model)
        self._wakes = 0

    # -- running ------------------------------------------------------------------------------

    def run(self, deadline: float) -> RtlEvent:
        """Run until the stop, a trap, or the deadline (`time.monotonic`): `RtlEvent.LIMIT` then.

        Raises:
            DeviceFault: of an access, without its pc's name; "endless sleep".
            AcceleratorError: a model raised something else.
        """
        state = self.model.state
        while time.monotonic() <= deadline:
            self.clock.run_due()
            due = self.clock.next_event
            state.limit = _NEVER if due is None else due
            event = self.model.run(0 if self.clock.has_posted else _BATCH)
            if event in (RtlEvent.STOP, RtlEvent.TRAP):
                return event
            if event is RtlEvent.SLEEP and self._is_waking():
                continue
            self._wakes = 0
            if event is RtlEvent.SLEEP:
                self._sleep(deadline)
            elif event is not RtlEvent.LIMIT:
                self._access(event)
        return RtlEvent.LIMIT

    def _is_waking(self) -> bool:
        """Return whether the core may still be about to notice an interrupt, a cycle later each."""
        self._wakes += self.model.state.irq
        return bool(self.model.state.irq) and self._wakes <= _LONGEST_WAKE

    def _sleep(self, deadline: float) -> None:
        """Skip to the next event, or wait for input from outside."""
        if self.clock.run_due():
            return
        due = self.clock.next_event
        if due is not None:
            self.clock.wait_until(due)
        elif self.clock.is_open:
            self.clock.wait_outside(lambda: time.monotonic() > deadline, deadline)
        else:
            detail = "WFI: no enabled interrupt is pending and no peripheral is at work"
            raise DeviceFault("endless sleep", pc=self.model.state.pc, detail=detail)

    def _access(self, event: RtlEvent) -> None:
        """Make a load or store outside the memory."""
        state = self.model.state
        self._stall = 0
        try:
            base, peripheral = self._find(event)
            if event is RtlEvent.LOAD:
                state.value = peripheral.read_register(state.address - base, state.size) & _WORD
            else:
                mask = (1 << 8 * state.size) - 1
                peripheral.write_register(state.address - base, state.size, state.value & mask)
            state.stall = self._stall
        except DeviceFault as fault:
            if fault.kind == "register access":
                fault.address = state.address
            if fault.pc is None:
                fault.pc = state.pc
            raise
        except CovpError:
            raise
        except Exception as error:
            raise AcceleratorError(
                f"peripheral {peripheral.name}: its model raised {error!r} at an access to "
                f"0x{state.address:08x} ({_source(error)})"
            ) from error
        finally:
            self._stall = None

    def _find(self, event: RtlEvent) -> tuple[int, Peripheral]:
        address = self.model.state.address
        for base, peripheral in self.shared.on_page(address & -PAGE):
            if base <= address < base + peripheral.size:
                return base, peripheral
        raise nothing_at(event is RtlEvent.STORE, address, self.model.state.size)

    # -- time ---------------------------------------------------------------------------------

    def _skip(self, cycles: int) -> None:
        if self._stall is None:
            self.model.state.cycle += cycles  # asleep
        else:
            self._stall += cycles

    def _limit(self, cycle: int) -> None:
        self.model.state.limit = cycle

    def _phase(self) -> tuple[int, int]:
        """Return the current phase and its cycles so far."""
        state = self.model.state
        return state.phase, self.model.spent() + self.clock.now - state.phase_start

    # -- peripherals --------------------------------------------------------------------------

    def attach(self, peripheral: Peripheral, base: int, name: str, irq: int | None = None) -> None:
        """Map a peripheral at ``base``, with its interrupt at line ``irq``."""
        self.shared.add(peripheral, base, name, InterruptLine(self._lines, irq))

    def detach(self, name: str) -> None:
        """Remove a peripheral and clear its interrupt."""
        _, peripheral = self.shared.remove(name)
        peripheral.interrupt.set(False)

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> RtlState:
        """Return memory, time and peripherals."""
        return RtlState(
            tuple(memory.content.copy() for memory in self._memories),
            self.clock.save_state(),
            self.model.state.cycle,
            self.shared.save_state(),
        )

    def load_state(self, state: object) -> None:
        """Go back to a saved state. Raises DeviceError: it has other peripherals now."""
        if not isinstance(state, RtlState):
            raise DeviceError("this state was not saved by a device with RTL")
        self.shared.check_state(state.peripherals)
        self.shared.load_state(state.peripherals)
        for _, peripheral in self.shared.peripherals.values():
            peripheral.interrupt.set(peripheral.interrupt.level)
        for memory, content in zip(self._memories, state.memories, strict=True):
            memory.content[:] = content
        self.clock.load_state(state.clock)
        self.model.state.cycle = state.cycle


def _source(error: BaseException) -> str:
    """Return the file and line that raised an error, for the author of the model."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


_CUSTOM_0 = 0x0B


class RtlInstructions:
    """The units of one core.

    The port takes instructions of opcode custom-0, numbered by funct7 and funct3.

    Args:
        name: of the core, for messages.
        core: whether it has the port.
        model: the core.
    """

    def __init__(self, name: str, core: RtlCore, model: RtlModel) -> None:
        self._name, self._core, self._model = name, core, model
        self._units: dict[str, CustomUnit] = {}

    def add(
        self,
        unit_name: str,
        instructions: Sequence[CustomInstruction],
        code: Callable[[], InstructionCode] | None = None,
    ) -> None:
        """Add a unit; see `RtlDevice.add_instructions`."""
        if not self._core.custom_instructions:
            raise DeviceError(
                f"unit {unit_name}: the RTL of {self._name} has no port for custom instructions; "
                "take the platform vexriscv-cfu, or device virtual"
            )
        if unit_name in self._units:
            raise DeviceError(f"unit {unit_name} already exists; remove it first")
        taken = {i.number for unit in self._units.values() for i in unit.instructions}
        for new in instructions:
            if new.opcode != _CUSTOM_0:
                raise DeviceError(
                    f"unit {unit_name}: {new.name} has opcode 0x{new.opcode:02x}; the port takes "
                    f"custom-0, 0x{_CUSTOM_0:02x}, alone"
                )
            if new.number in taken:
                raise DeviceError(f"unit {unit_name}: the encoding of {new.name} is taken")
            taken.add(new.number)
        unit = make_custom_unit(unit_name, instructions, code)
        self._connect(unit_name, unit)
        self._units[unit_name] = unit
        for new in instructions:
            function = unit.code.function(new)
            self._model.set_instruction(new.number, function, unit.code.state, new.cycles)

    def _connect(self, unit_name: str, unit: CustomUnit) -> None:
        """Let a unit in simulation have the port, which is then its own."""
        in_simulation = [name for name, u in self._units.items() if u.code.clocked is not None]
        if in_simulation or (unit.code.clocked is not None and self._units):
            others = ", ".join(in_simulation or self._units)
            raise DeviceError(
                f"unit {unit_name}: the core has one port for custom instructions, which a unit in "
                f"Verilog has alone; {others} is there already"
            )
        if unit.code.clocked is not None:
            self._model.set_unit(*unit.code.clocked)

    def remove(self, unit_name: str) -> None:
        """Remove a unit; see `RtlDevice.remove_instructions`."""
        unit = self._unit(unit_name)
        for old in unit.instructions:
            self._model.set_instruction(old.number, 0, 0, 0)
        if unit.code.clocked is not None:
            self._model.set_unit(0, 0, 0)
        del self._units[unit_name]

    def uses(self, unit_name: str) -> Mapping[str, int]:
        """Return the executions of each instruction of a unit."""
        return {i.name: self._model.uses(i.number) for i in self._unit(unit_name).instructions}

    def reset(self) -> None:
        """Clear the state of all units."""
        for unit in self._units.values():
            unit.code.reset()

    def raise_error(self) -> None:
        """Raise AcceleratorError if something went wrong in a unit."""
        raise_error(self._units)

    def save_state(self) -> dict[str, bytes]:
        """Return the state of each unit."""
        return {name: unit.code.save_state() for name, unit in self._units.items()}

    def load_state(self, state: Mapping[str, bytes]) -> None:
        """Go back to a saved state. Raises DeviceError: there are other units now."""
        if set(state) != set(self._units):
            raise DeviceError(
                f"the state was saved with the units {', '.join(state) or 'none'} of custom "
                f"instructions, now there are: {', '.join(self._units) or 'none'}"
            )
        for name, words in state.items():
            self._units[name].code.load_state(words)

    def _unit(self, name: str) -> CustomUnit:
        return find_unit(self._units, name)
