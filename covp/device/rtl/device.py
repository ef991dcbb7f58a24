"""`RtlDevice`: a platform whose core is simulated as RTL."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from covp.base.closing import Closing
from covp.chip.isa.riscv import CAUSES
from covp.chip.memory_errors import (
    is_stack_overflow,
    nearest_region,
    outside_memory,
    stack_overflow_detail,
)
from covp.chip.platform_file import Platform
from covp.device.abilities import Abilities
from covp.device.code_names import CodeNames
from covp.device.machine.native_caches import NativeCaches, uncached_waits
from covp.device.phase_count import PhaseCount
from covp.device.rtl.build import library_of
from covp.device.rtl.cores import rtl_of
from covp.device.rtl.machine import RtlInstructions, RtlMachine
from covp.device.rtl.model import RtlEvent, RtlModel
from covp.device.rtl.recording import RtlRecording
from covp.device.stop import Source, Sources, Stop
from covp.device.wave import Wave
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.hardware.bus import Memory
from covp.hardware.clock import Clock
from covp.hardware.custom_instruction import CustomInstruction, InstructionCode
from covp.hardware.job_unit import rejected_jobs
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_models import load_peripheral

_BOOT = 0x7FFFF000
"""Address of the boot code: below those that some cores take for I/O."""
_SLOWER = 20
"""The largest factor by which recording slows a core down."""


class RtlDevice(Closing):
    """A device that runs programs on a core's RTL, cycle by cycle.

    Every execution starts from the core's reset, so that its registers are undefined but for the
    sp, no interrupt is enabled, and its own caches are empty; memory and the platform's caches
    between core and memory stay. Boot code that no figure
    contains sets the sp and jumps to the entry.

    Cycles of an execution are those from the one in which the instruction at ``entry`` retires to
    the one in which that at ``stop`` does, so that they add up over phases. Synchronous exceptions
    are faults.

    Args:
        platform: memory map; its core has RTL.
        timeout: default time limit of `execute`, in seconds of host time.

    Raises:
        PlatformError: there is no RTL of this core, or memory at 0x7ffff000, the place of the boot
            code.
        ToolchainError: Verilator or the RTL's package is missing.
    """

    def __init__(self, platform: Platform, timeout: float = 300.0) -> None:
        self.platform, self.timeout = platform, timeout
        self.rtl = rtl_of(platform.core)
        taken = platform.region_of(_BOOT)
        if taken is not None:
            raise PlatformError(
                f"device rtl: memory {taken.name} holds 0x{_BOOT:08x}, where cores boot; move it"
            )
        self.memories = [Memory.of(region) for region in platform.memory]
        self.names = CodeNames(platform.core.architecture, self.read)
        outside = _without_caches(platform, self.rtl.caches)
        self._caches = NativeCaches(outside)
        self._empty = self._caches.save_state()
        self._model = RtlModel(
            library_of(platform.core), self.memories, uncached_waits(outside), self._caches
        )
        self._instructions = RtlInstructions(platform.core.name, self.rtl, self._model)
        self._machine = RtlMachine(platform, self._model, self.memories)
        for config in platform.peripherals:
            peripheral = load_peripheral(config.model, config.parameters)
            self.attach(peripheral, config.base, config.name, config.irq)
        self._source = Source("rtl", platform.core.name, platform.wait_states)

    def __del__(self) -> None:
        if hasattr(self, "_machine"):
            self.close()

    def close(self) -> None:
        """Free the simulation. A second call does nothing; other calls after it are errors."""
        self._machine.clock.close()
        self._model.close()

    @property
    def model(self) -> RtlModel:
        """The simulation. Raises DeviceError after `close`."""
        if not self._model.is_open:
            raise DeviceError("the device is closed")
        return self._model

    # -- LowLevelDevice -----------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """The abilities of a simulated core."""
        return Abilities(
            phases=self,
            hardware=self,
            names=self.names,
            time=self,
            state=self,
            closing=self,
            waves=self,
        )

    @property
    def sources(self) -> Sources:
        """The sources of both figures: the RTL."""
        return Sources(Source("exact"), self._source)

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        return self._memory(address, size).read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` from ``address`` on, in flash too. Raises DeviceError outside memory."""
        self._memory(address, len(data)).write(address, data)

    def reset(self) -> None:
        """Reset the peripherals and the state of custom instructions, and empty the caches.

        The core starts every execution from its own reset.
        """
        self._instructions.reset()
        self._machine.shared.reset()
        self._caches.load_state(self._empty)

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        """Run from ``entry`` until the pc reaches ``stop``; bit 0 of both is ignored.

        Raises:
            DeviceFault: the program faulted, or the time is over (kind "timeout").
        """
        entry, stop = entry & ~1, stop & ~1
        model, state = self.model, self.model.state
        cycles, instructions, phases = state.cycle, state.instructions, model.phases()
        if entry != stop:
            self._start(entry, stop)
            slower = _SLOWER if model.is_recording else 1
            self._run(self.timeout * slower if timeout is None else timeout)
        return Stop(
            stop,
            state.instructions - instructions,
            state.cycle - cycles,
            sources=self.sources,
            phases=tuple(
                PhaseCount(after.instructions - then.instructions, after.cycles - then.cycles)
                for after, then in zip(model.phases(), phases, strict=True)
            ),
        )

    def _start(self, entry: int, stop: int) -> None:
        top = self.platform.ram.start + self.platform.stack_bytes
        boot = boot_code(entry, top, self.rtl.csrs)
        self.model.set_boot(_BOOT + self.rtl.boot, boot)
        self.model.begin(entry, stop)

    def _run(self, seconds: float) -> None:
        try:
            event = self._machine.run(time.monotonic() + seconds)
        except DeviceFault as fault:
            raise self._explain(fault) from fault.__cause__
        finally:
            self._instructions.raise_error()
        if event is RtlEvent.TRAP:
            raise self._explain(self._trap())
        if event is RtlEvent.LIMIT:
            detail = f"{seconds:g} seconds of host time"
            raise self._explain(DeviceFault("timeout", pc=self.model.state.pc, detail=detail))

    # -- RecordsWaves -------------------------------------------------------------------------

    def recording(self, wave: Wave, phase: int | None = None) -> RtlRecording:
        """Record a waveform: ``with device.recording(Wave(Path("out.fst"))): ...``.

        The first use of a format compiles the core once more; the device goes on with that model,
        which is slower. Cycle N is at N ns of the file's time.

        Args:
            wave: the file and the window.
            phase: of which; set phases within the context.
        """
        return RtlRecording(wave, phase, lambda: self._switch_model(wave.file.suffix))

    def _switch_model(self, suffix: str) -> RtlModel:
        self.model.switch(library_of(self.platform.core, suffix))
        return self.model

    # -- faults -------------------------------------------------------------------------------

    def _trap(self) -> DeviceFault:
        state = self.model.state
        kind, detail = CAUSES.get(state.cause, ("unhandled exception", f"mcause {state.cause}"))
        if self.platform.region_of(state.pc) is None:
            kind, detail = "unmapped fetch", nearest_region(self.platform, state.pc)
        if kind in ("illegal instruction", "breakpoint"):
            detail += rejected_jobs(self.peripherals)
        return DeviceFault(kind, pc=state.pc, detail=detail)

    def _explain(self, fault: DeviceFault) -> DeviceFault:
        """Return the fault with what is known of the core, and names of its code."""
        self.model.look()
        state = self.model.state
        fault.registers = {"sp": state.sp, "ra": state.ra}
        if fault.kind in ("unmapped read", "unmapped write"):
            self._classify(fault, state.sp)
        if fault.pc is not None:
            fault.registers["pc"] = fault.pc
        return self.names.explain(fault)

    def _classify(self, fault: DeviceFault, sp: int) -> None:
        """Set a fault's kind by the cause of an access where nothing is."""
        assert fault.address is not None
        memory = self.platform.region_of(fault.address)
        if memory is not None:
            fault.kind, fault.detail = "write to read-only memory", memory.name
        elif is_stack_overflow(self.platform, fault.address, sp):
            fault.kind = "stack overflow"
            fault.detail = stack_overflow_detail(self.platform, sp)
        else:
            fault.detail = nearest_region(self.platform, fault.address)

    # -- HostsHardware ------------------------------------------------------------------------

    @property
    def peripherals(self) -> Mapping[str, tuple[int, Peripheral]]:
        """Name to (base address, model)."""
        return self._machine.shared.peripherals

    @property
    def clock(self) -> Clock:
        """The board's time: cycles of executions, sleep included."""
        return self._machine.clock

    def attach(self, peripheral: Peripheral, base: int, name: str, irq: int | None = None) -> None:
        """Put a model on the bus; all interrupt lines are the core's external interrupt.

        Raises:
            PlatformError: its addresses or name are taken, or the core has no interrupts.
        """
        if irq is not None and not self.rtl.interrupts:
            raise PlatformError(
                f"peripheral {name}: line {irq}; {self.platform.core.name} has no standard "
                "interrupts: leave irq out"
            )
        self._machine.attach(peripheral, base, name, irq)

    def detach(self, name: str) -> None:
        """Take a model off the bus."""
        self._machine.detach(name)

    def add_instructions(
        self,
        unit_name: str,
        instructions: Sequence[CustomInstruction],
        code: Callable[[], InstructionCode] | None = None,
    ) -> None:
        """Give the core's port the instructions of a unit; an instruction of N cycles takes N.

        Args:
            unit_name: for `remove_instructions` and `instruction_uses`.
            instructions: of the unit.
            code: makes what executes them; None: their C, or their models where there is none.

        Raises:
            DeviceError: the core has no such port, or the name or an encoding is taken.
            ToolchainError: C or RTL of the instructions cannot be compiled.
        """
        self._instructions.add(unit_name, instructions, code)

    def remove_instructions(self, unit_name: str) -> None:
        """Take them away: they are illegal from now on. Raises DeviceError without such a unit."""
        self._instructions.remove(unit_name)

    def instruction_uses(self, unit_name: str) -> Mapping[str, int]:
        """Return how often each custom instruction was executed since it was added."""
        return self._instructions.uses(unit_name)

    # -- SavesState ---------------------------------------------------------------------------

    def save_state(self) -> object:
        """Return memory, time and peripherals, which are all that an execution leaves."""
        parts = self._machine, self._instructions, self._caches
        return tuple(part.save_state() for part in parts)

    def load_state(self, state: object) -> None:
        """Go back to a state that this very device saved.

        Raises:
            DeviceError: it has other peripherals or custom instructions now.
        """
        if not isinstance(state, tuple):
            raise DeviceError("this state was not saved by a device with RTL")
        machine, instructions, caches = state
        self._instructions.load_state(instructions)
        self._machine.load_state(machine)
        self._caches.load_state(caches)

    # -- CountsByPhase ------------------------------------------------------------------------

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """Set the markers that phases begin at; all phases start at zero."""
        self.model.set_phases(markers)

    def current_phase(self) -> int:
        """Return the phase that is current now, also after a fault."""
        return self.model.state.phase

    def _memory(self, address: int, size: int) -> Memory:
        for memory in self.memories:
            if memory.region.holds(address, size):
                return memory
        raise outside_memory(address, size)


def _without_caches(platform: Platform, names: Collection[str]) -> Platform:
    """Return a platform without some caches."""
    memory = (
        msgspec.structs.replace(region, caches=tuple(n for n in region.caches if n not in names))
        for region in platform.memory
    )
    caches = tuple(cache for cache in platform.caches if cache.name not in names)
    return msgspec.structs.replace(platform, memory=tuple(memory), caches=caches)


_LUI, _ADDI, _JALR, _SYSTEM = 0x37, 0x13, 0x67, 0x73
_CSRRW = 1
_T0, _SP = 5, 2


def boot_code(entry: int, sp: int, csrs: Mapping[int, int]) -> list[int]:
    """Return words of code, without compressed instructions.

    Encodings: RISC-V unprivileged ISA 20191213, chapters 2 and 9.

    Args:
        entry: of the program.
        sp: value of the stack pointer there.
        csrs: number to value of CSRs to set.
    """
    words = []
    for number, value in csrs.items():
        words += [*_load(_T0, value), number << 20 | _T0 << 15 | _CSRRW << 12 | _SYSTEM]
    return [*words, *_load(_SP, sp), *_load(_T0, entry), _T0 << 15 | _JALR]


def _load(register: int, value: int) -> tuple[int, int]:
    """Encode LUI and ADDI that load a value into a register."""
    high = (value + 0x800) & 0xFFFFF000
    low = value - high & 0xFFF
    return high | register << 7 | _LUI, low << 20 | register << 15 | register << 7 | _ADDI
