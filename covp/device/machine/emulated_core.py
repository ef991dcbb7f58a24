"""`EmulatedCore`: one processor core on Unicorn, with its counter and interrupt controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc, UcContext, uclib

from covp.base.memory_states import ForbiddenAccess
from covp.chip.cores import Core
from covp.chip.platform_file import Platform
from covp.device.machine.counter import Counter, CounterState, Totals
from covp.device.machine.custom_instructions import CustomInstructions, CustomState
from covp.device.machine.engine import (
    open_engine,
    read_registers,
    register_id,
    register_ids,
    reset_core,
)
from covp.device.machine.execution import Execution
from covp.device.machine.faults import FaultReader
from covp.device.machine.mmio import MmioPort, MmioState
from covp.device.machine.native_caches import NativeCaches, uncached_waits
from covp.device.machine.nvic import ARMV6M_LINES, Nvic
from covp.device.machine.riscv_csrs import RiscvCounters, RiscvInterrupts
from covp.device.machine.run_control import RunControl, Sleep
from covp.device.machine.shadow import Shadow
from covp.device.machine.special_instructions import special_instructions
from covp.device.machine.system_control import (
    DWT_BASE,
    SCS_BASE,
    CacheRegisters,
    Dwt,
    SystemControl,
)
from covp.device.machine.watchpoints import Watchpoints
from covp.device.timing.model import core_timing
from covp.device.timing.native import Pipeline
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock, DividedClock
from covp.hardware.interrupt import InterruptLine
from covp.hardware.peripheral_map import PAGE, PeripheralMap


@dataclass(frozen=True)
class CoreState:
    """The content of an `EmulatedCore.save_state`; opaque."""

    registers: UcContext
    counter: CounterState
    csrs: dict[int, int]
    interrupts: object
    custom: CustomState
    mmio: MmioState
    peripherals: dict[str, object]
    wfi: int | None


class EmulatedCore:
    """A core: engine, counter, interrupts, custom instructions, watchpoints; run by a board.

    Args:
        platform: the memory map; its first flash has the vector table, its first ram the stack
            that the sp points to after a reset.
        core: which one.
        memories: shared with other cores, in the order of the platform's regions.
        bus: where exceptions save registers; its writes let every core forget code.
        clock: of the board.
        shared: peripherals that every core can address.
        divider: cycles of the board's clock per cycle of the core.

    Attributes:
        memories: as given.
        engine: the emulator; None after `close`.
        counter, execution, interrupts, custom, watchpoints, control, sleep, mmio: the parts.
        timing: the model that estimates cycles.
        divider: as given.
        csrs: RISC-V's views of the counts.
        own: the peripherals that are part of the core: SCS and DWT on Arm.

    Raises:
        PlatformError: the emulator cannot hold the memory map.
    """

    def __init__(
        self,
        platform: Platform,
        core: Core,
        memories: Sequence[Memory],
        bus: Bus,
        clock: Clock,
        shared: PeripheralMap,
        divider: int = 1,
    ) -> None:
        self._platform, self.core, self.memories = platform, core, memories
        self.divider = divider
        self.thumb = 1 if core.architecture == "arm" else 0
        self._engine: Uc | None = open_engine(core)
        self._ids = register_ids(core.architecture)
        for memory in memories:
            _map(self._engine, memory)
        self.timing = core_timing(core)
        self.counter = Counter(
            self._engine._uch,
            uclib,
            memories,
            bool(self.thumb),
            Pipeline(self.timing, uncached_waits(platform)),
            NativeCaches(platform),
            special_instructions(core, bool(platform.cached_ram)),
            core.needs_alignment,
        )
        self.custom = CustomInstructions(core, self._engine, self.counter, memories)
        self.watchpoints = Watchpoints(self._engine, self.counter, memories)
        self.interrupts = _interrupts(platform, core, self._engine, bus)
        self.csrs = RiscvCounters(
            lambda: self.cycles, lambda: self.instructions, lambda: _pending_bits(self.interrupts)
        )
        self.shadow: Shadow | None = None
        self.control = RunControl()
        self.sleep = Sleep(clock, self.interrupts, self.control)
        own_clock = clock if divider == 1 else DividedClock(clock, divider)
        self.own = PeripheralMap(memories, bus, own_clock)
        self.mmio = MmioPort(
            core, self._engine, self.counter, self.interrupts, (shared, self.own), clock,
            self.control, bus,
        )  # fmt: skip
        self.execution = Execution(
            core, self._engine, self.counter, self.mmio, self.watchpoints, self.csrs, clock,
            self.interrupts, self.custom,
            FaultReader(platform, core, self._engine, self.counter), self.sleep, divider,
        )  # fmt: skip
        if isinstance(self.interrupts, Nvic):
            caches = CacheRegisters(platform.caches, self.counter.data_cache)
            self._add_own(SystemControl(self.interrupts, caches), SCS_BASE, "scs")
            if not core.isa.is_armv6m:
                self._add_own(Dwt(), DWT_BASE, "dwt")

    def _add_own(self, peripheral: SystemControl | Dwt, base: int, name: str) -> None:
        self.own.add(peripheral, base, name, self.line(name, None))
        self.mmio.update(base, peripheral.size)

    def close(self) -> None:
        """Free the emulator. A second call does nothing."""
        if self._engine is not None:
            engine, self._engine = self._engine, None
            # Frees the emulator now, and not again when it is collected.
            engine._Uc__finalizer()  # type: ignore[attr-defined]
            self.counter.close()

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None and hasattr(self, "counter"):
            self.close()

    @property
    def is_open(self) -> bool:
        """True if the core is not closed yet."""
        return self._engine is not None

    @property
    def engine(self) -> Uc:
        """The emulator. Raises DeviceError after `close`."""
        if self._engine is None:
            raise DeviceError("the device is closed")
        return self._engine

    # -- running ------------------------------------------------------------------------------

    def begin(self, deadline: float) -> None:
        """Start a run with a deadline (`RunControl`). Raises DeviceError: one is running."""
        if self.execution.running:
            raise DeviceError("the device is running already")
        self.control.begin(deadline)
        self.watchpoints.forget_hit()

    def advance(self, pc: int, stop: int, last: int | None) -> int:
        """Run as `Execution.run` does, and sleep after a WFI; return the pc to go on from.

        Raises:
            DeviceFault, and whatever a peripheral raised: what ended the program.
        """
        if not self.sleep.is_asleep:
            pc = self.execution.run(pc, stop, last)
        if self.sleep.is_asleep:
            self.sleep.wait()
        return pc

    def request_halt(self) -> None:
        """End the run soon. Thread-safe; to be repeated until it has ended."""
        self.control.halt_requested = True
        if self._engine is not None:
            self.counter.request_stop()

    def forget_code(self, address: int, size: int) -> None:
        """Forget the code translated from bytes of memory that have changed.

        Only where there may be some: the emulator fetches from pages when it looks, and stores to
        pages that were fetched from are slow.
        """
        if self.shadow is not None:
            self.shadow.wrote(address, size)
        if size and self.counter.may_have_code(address, size):
            self.engine.ctl_remove_cache(address, address + size)
            self.mmio.forget_code()

    def check_memory(self, explain: Callable[[ForbiddenAccess], DeviceFault]) -> Shadow:
        """Check accesses to memory from now on; see `ChecksMemory.check_memory`."""
        if self.shadow is None:
            self.shadow = self.counter.add_shadow()
            if isinstance(self.interrupts, Nvic):
                self.interrupts.on_frame = self.shadow.stack_frame
            self.engine.ctl_flush_tb()
        self.execution.check_memory(self.shadow, explain)
        return self.shadow

    def forget_pages(self) -> None:
        """Forget which pages may be stored to; `Memory.dirty` has changed."""
        self.engine.ctl(uc.UC_CTL_TLB_FLUSH, uc.UC_CTL_IO_WRITE)

    def reset(self) -> None:
        """Reset registers and the core's own peripherals; sp to the stack's top."""
        top = self._platform.ram.start + self._platform.stack_bytes
        self.interrupts.reset()
        self.custom.reset()
        self.counter.clear_caches()
        self.sleep.wake()
        reset_core(self.engine, self.core, top)
        self.own.reset()

    def line(self, name: str, number: int | None) -> InterruptLine:
        """Return the interrupt request line ``number`` for the peripheral ``name``.

        Raises:
            PlatformError: the core has no such line.
        """
        if number is not None and self.core.isa.is_armv6m and number >= ARMV6M_LINES:
            raise PlatformError(
                f"peripheral {name}: line {number}; a {self.core.name} has {ARMV6M_LINES} "
                "interrupt lines"
            )
        return InterruptLine(self.interrupts, number, self.counter.request_stop)

    # -- registers ----------------------------------------------------------------------------

    def read_register(self, name: str) -> int:
        """Read a register by a debugger's name: r0..r12, sp, lr, pc, xpsr; ra, sp, a0 ..."""
        return int(self.engine.reg_read(self._register(name)))

    def write_register(self, name: str, value: int) -> None:
        """Change a register. Raises DeviceError: none of that name, or the pc of a running core.

        An even pc leaves Arm's Thumb state as it is, an odd one sets it.
        """
        if name == "pc" and self.execution.running:
            raise DeviceError("the pc cannot be changed while an instruction is executed")
        if name == "pc" and self.thumb:
            value |= self.read_register("xpsr") >> 24 & 1
        self.engine.reg_write(self._register(name), value & 0xFFFFFFFF)

    def register_id(self, name: str) -> int:
        """Return Unicorn's number of a register by its ``name`` in `covp.chip.isa`."""
        return register_id(self.core.architecture, name)

    def registers(self) -> dict[str, int]:
        """Return all general registers and the pc."""
        return read_registers(self.engine, self.core.architecture)

    def _register(self, name: str) -> int:
        if name not in self._ids:
            raise DeviceError(f"no register {name!r}; there are {', '.join(self._ids)}")
        return self._ids[name]

    # -- counts -------------------------------------------------------------------------------

    @property
    def totals(self) -> Totals:
        """Instructions and cycles; inside a callback those before the running block."""
        if self.execution.running:
            return self.counter.now(self.counter.block())
        return Totals(self.counter.state.instructions, self.counter.state.cycles)

    @property
    def instructions(self) -> int:
        """Retired instructions since the core was made: exact."""
        return self.totals.instructions

    @property
    def cycles(self) -> int:
        """Core cycles since the core was made, waiting included: an estimate."""
        return self.totals.cycles

    @property
    def time(self) -> int:
        """The cycle of the board's clock that the core has reached."""
        return self.cycles * self.divider

    def pass_time(self, ticks: int) -> None:
        """Let cycles of the board's clock, or somewhat more, pass without an instruction."""
        self.counter.wait(-(-ticks // self.divider))

    def phase(self) -> tuple[int, int]:
        """Return the current phase, and the cycles spent in it since phases were set."""
        phase, origin = self.counter.phase()
        return phase, self.cycles - origin

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> CoreState:
        """Return all but memory that the next instruction depends on. Only while it does not run.

        Events fire between blocks of code, so these have to be the same after it as after
        `load_state`: blocks that were split are forgotten, by both. All others depend on nothing
        but where they begin.
        """
        self.execution.forget_splits()
        return CoreState(
            self.engine.context_save(),
            self.counter.save_state(),
            self.csrs.save_state(),
            self.interrupts.save_state(),
            self.custom.save_state(),
            self.mmio.save_state(),
            self.own.save_state(),
            self.sleep.wfi,
        )

    def load_state(self, state: CoreState) -> None:
        """Go back to a state that this very core saved; memory is the board's.

        Raises:
            DeviceError: it has other custom instructions now.
        """
        self.custom.load_state(state.custom)
        self.engine.context_restore(state.registers)
        self.execution.forget_splits()
        self.counter.load_state(state.counter)
        self.csrs.load_state(state.csrs)
        self.interrupts.load_state(state.interrupts)
        self.mmio.load_state(state.mmio)
        self.own.load_state(state.peripherals)
        self.sleep.wfi = state.wfi


def _map(engine: Uc, memory: Memory) -> None:
    region = memory.region
    if region.start % PAGE or region.bytes % PAGE:
        raise PlatformError(
            f"memory {region.name}: the virtual device needs start and size in multiples of "
            f"{PAGE}, not 0x{region.start:x} and {region.bytes}"
        )
    permissions = uc.UC_PROT_ALL if region.kind == "ram" else uc.UC_PROT_READ | uc.UC_PROT_EXEC
    engine.mem_map_ptr(region.start, region.bytes, permissions, memory.pointer)


def _interrupts(platform: Platform, core: Core, engine: Uc, bus: Bus) -> Nvic | RiscvInterrupts:
    if core.architecture != "arm":
        return RiscvInterrupts(engine)
    bits, cycles = (2, 15) if core.isa.is_armv6m else (4, 12)
    return Nvic(engine, bus, platform.flash.start, bits, cycles, core.has("fpu"))


def _pending_bits(interrupts: Nvic | RiscvInterrupts) -> int:
    return interrupts.mip if isinstance(interrupts, RiscvInterrupts) else 0
