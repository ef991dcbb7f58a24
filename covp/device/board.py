"""`Board`: memories, bus, clock and peripherals, and the emulated cores that share them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from covp.chip.cores import Core
from covp.chip.memory_errors import outside_memory
from covp.chip.platform_file import FIRST, Platform
from covp.device.code_names import CodeNames
from covp.device.host_calls import HostCalls
from covp.device.machine.emulated_core import CoreState, EmulatedCore
from covp.device.phase_count import CORE
from covp.device.saved_memory import SavedMemory
from covp.device.semihosting import Semihosting
from covp.device.stop import EXACT, Source, Sources
from covp.device.timing.model import core_timing
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock, ClockState
from covp.hardware.custom_instruction import CustomInstruction, InstructionCode
from covp.hardware.flash_controller import FlashController
from covp.hardware.job_unit import rejected_jobs
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_map import PeripheralMap
from covp.hardware.peripheral_models import load_peripheral
from covp.hardware.shared_port import SharedPort
from covp.hardware.traffic import TrafficLedger

_TRAPS = frozenset({"illegal instruction", "breakpoint"})


@dataclass(frozen=True)
class BoardState:
    """The content of a `Board.save_state`; opaque."""

    memory: SavedMemory
    clock: ClockState
    peripherals: dict[str, object]
    cores: tuple[CoreState, ...]


class Board:
    """A platform, emulated.

    Cores have the same memory, peripherals and time; each has its own registers, counters and
    interrupt controller (and SCS and DWT on Arm). A core's stores to code are seen at once by that
    core only; writes of bus masters and of `write` by all.

    Args:
        platform: memory map, clock and the peripherals to attach.
        cores: by default the platform's; others have the memory, stack and clock of its first one.

    Attributes:
        memories, bus, clock, cores: the parts.
        shared: the peripherals that all cores can address.
        ledger: the bytes that peripherals, and exceptions, move; None: they are not counted.
        names: of the code, for faults.

    Raises:
        PlatformError: the emulator cannot hold the memory map.
    """

    def __init__(self, platform: Platform, cores: Sequence[Core] | None = None) -> None:
        self.platform = platform
        self.semihosting: Semihosting | None = None
        """The host that answers the programs' calls; see `set_semihosting`."""
        self.memories = [Memory.of(region) for region in platform.memory]
        # None of these is called before the cores are made.
        self.clock = Clock(
            lambda: self.current.time,
            lambda cycles: self.current.pass_time(cycles),
            platform.clock_hz,
            lambda cycle: self.current.execution.limit_cycles(cycle),
            lambda: self.current.phase(),
            lambda: min(core.time for core in self.active),
        )
        self.bus = Bus(self.memories, "host", self.forget_code)
        self.ledger: TrafficLedger | None = None
        self.shared = PeripheralMap(self.memories, self.bus, self.clock, SharedPort.of(platform))
        self.cores = self._made_cores(cores)
        self._put_caches()
        self.names = CodeNames(self.cores[0].core.architecture, self.read)
        self.current = self.cores[0]
        """The core that runs, or ran last."""
        self._near: weakref.ref[SavedMemory] | None = None
        self.active: tuple[EmulatedCore, ...] = (self.current,)
        """The cores that take part in time; the others are halted."""
        for config in platform.peripherals:
            model = load_peripheral(config.model, config.parameters)
            core = platform.core_names.index(config.core)
            self.attach(model, config.base, config.name, config.irq, core)
        self.reset()

    def _made_cores(self, cores: Sequence[Core] | None) -> tuple[EmulatedCore, ...]:
        """Return the cores given, or the platform's, each with its view of the memory."""
        names = self.platform.core_names
        views = [self.platform.seen_by(name) for name in names]
        if cores is not None:
            names, views = names[:1] * len(cores), views[:1] * len(cores)
        memories = {memory.region.name: memory for memory in self.memories}
        return tuple(
            EmulatedCore(
                view,
                core,
                [memories[region.name] for region in view.memory],
                self.bus.for_master(CORE if name == FIRST else name, moves=True),
                self.clock,
                self.shared,
                self.platform.clock_hz // view.clock_hz,
            )
            for name, view, core in zip(
                names, views, cores or [view.core for view in views], strict=True
            )
        )

    def _put_caches(self) -> None:
        """Let memory know the data cache that core 0 reads it through."""
        for memory in self.memories:
            if memory.region in self.platform.cached_ram:
                memory.cache = self.cores[0].counter.data_cache

    def close(self) -> None:
        """Free the emulators. A second call does nothing; other calls after it are errors."""
        self.clock.close()
        for core in self.cores:
            core.close()

    @property
    def is_open(self) -> bool:
        """True if the board is not closed yet."""
        return self.cores[0].is_open

    def check_open(self) -> None:
        """Raise DeviceError after `close`."""
        if not self.is_open:
            raise DeviceError("the device is closed")

    def reset(self) -> None:
        """Put cores and peripherals into their reset state; memory and counters are kept."""
        for core in self.cores:
            core.reset()
        self.shared.reset()
        if self.semihosting is not None:
            self.semihosting.reset()

    def activate(self, cores: Sequence[EmulatedCore]) -> None:
        """Let these cores run from now on, and no others; for those that were halted time passes.

        Raises:
            DeviceError: the board is closed.
        """
        self.check_open()
        if len(cores) == 1 and self.active == (cores[0],):
            return  # its time is that of the board
        step = math.lcm(*(core.divider for core in cores))
        now = -(-max(core.time for core in (*self.active, *cores)) // step) * step
        for core in cores:
            core.pass_time(now - core.time)
        self.active = tuple(cores)
        self.current = self.active[0]

    # -- memory and bus -----------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        data = b"".join(memory.read(at, n) for memory, at, n in self._parts(address, size))
        return self.cores[0].custom.original(address, data)

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` from ``address`` on, in flash too; code that ran there is forgotten."""
        parts = self._parts(address, len(data))
        self.cores[0].custom.restore(address, len(data))
        for memory, at, n in parts:
            memory.write(at, data[at - address : at - address + n])
        self.forget_code(address, len(data))

    def read_bus(self, address: int, size: int) -> bytes:
        """Read memory as `read` does, or a peripheral's registers as a load of core 0 would.

        Args:
            address: of the first byte.
            size: in bytes; a word, 4, for registers.

        Raises:
            DeviceError: nothing is there, or the peripheral rejects the access.
        """
        if self.bus.is_memory(address, min(size, 1)):
            return self.read(address, size)
        mmio = self.cores[0].mmio
        return b"".join(
            mmio.read(address + offset, min(4, size - offset)).to_bytes(
                min(4, size - offset), "little"
            )
            for offset in range(0, size, 4)
        )

    def write_bus(self, address: int, data: bytes) -> None:
        """Write memory as `write` does, or a peripheral's register as a store of core 0 would.

        While a flash controller is set to program, ``data`` for its flash goes to it in words (less
        where the address or the size is not a multiple of 4).
        """
        if self.bus.is_memory(address, min(len(data), 1)):
            if not self._programs(address, data):
                self.write(address, data)
            return None
        for offset in range(0, len(data), 4):
            word = data[offset : offset + 4]
            value = int.from_bytes(word, "little")
            self.cores[0].mmio.write(address + offset, len(word), value)
        return None

    def _programs(self, address: int, data: bytes) -> bool:
        """Pass ``data`` to the flash controller and return whether it took them."""
        controller = self._flash_controller
        if controller is None or not controller.is_programming:
            return False
        if not self.bus.region_at(controller.start).holds(address, len(data)):
            return False
        size = next(size for size in (4, 2, 1) if not (address | len(data)) % size)
        for at in range(0, len(data), size):
            value = int.from_bytes(data[at : at + size], "little")
            controller.store(address + at, size, value)
        return True

    def forget_code(self, address: int, size: int) -> None:
        """Let cores forget code translated from ``size`` bytes at ``address``: they changed."""
        for core in self.cores:
            core.forget_code(address, size)

    def _parts(self, address: int, size: int) -> list[tuple[Memory, int, int]]:
        """Return the memories that hold ``size`` bytes from ``address``, with start and bytes."""
        parts, at, end = [], address, address + size
        while True:
            found = (each for each in self.memories if each.region.holds(at, min(end - at, 1)))
            memory = next(found, None)
            if memory is None:
                raise outside_memory(address, size)
            parts.append((memory, at, min(end, memory.region.end) - at))
            at = min(end, memory.region.end)
            if at == end:
                return parts

    # -- peripherals --------------------------------------------------------------------------

    @property
    def peripherals(self) -> dict[str, tuple[int, Peripheral]]:
        """Name to (base address, model); those that are part of core 0 come first."""
        return {**self.cores[0].own.peripherals, **self.shared.peripherals}

    def attach(
        self, peripheral: Peripheral, base: int, name: str, irq: int | None = None, core: int = 0
    ) -> None:
        """Put a peripheral on the bus at ``base``.

        Args:
            peripheral: the model.
            base: address of its first register.
            name: for faults and `detach`.
            irq: number of its interrupt line, from 0; None for none.
            core: number of the core that has the line.

        Raises:
            PlatformError: its addresses or name are taken, or the core has no such line.
        """
        self.check_open()
        line = self.cores[core].line(name, irq)
        for other in self.cores:
            other.own.check_free(name, base, peripheral.size)
        if isinstance(peripheral, FlashController) and self._flash_controller is not None:
            raise PlatformError(f"peripheral {name}: a device has one flash controller at most")
        self.shared.add(peripheral, base, name, line)
        for other in self.cores:
            other.mmio.update(base, peripheral.size)
        if isinstance(peripheral, FlashController):
            self._control_flash(peripheral, peripheral)

    def detach(self, name: str) -> None:
        """Take a peripheral off the bus."""
        self.check_open()
        base, peripheral = self.shared.remove(name)
        for core in self.cores:
            core.mmio.update(base, peripheral.size)
        if isinstance(peripheral, FlashController):
            self._control_flash(peripheral, None)

    @property
    def _flash_controller(self) -> FlashController | None:
        models = (model for _, model in self.shared.peripherals.values())
        return next((model for model in models if isinstance(model, FlashController)), None)

    def _control_flash(self, known: FlashController, controller: FlashController | None) -> None:
        """Pass stores to the flash that ``known`` is for to the controller from now on."""
        region = self.bus.region_at(known.start)
        for core in self.cores:
            core.mmio.control_flash(region, controller)

    def count_traffic(self) -> TrafficLedger:
        """Count from now on the bytes that hardware moves."""
        if self.ledger is None:
            self.ledger = TrafficLedger(lambda: self.current.counter.phase()[0])
            self.bus.observe(self.ledger)
        return self.ledger

    def set_semihosting(self, host: Semihosting | None) -> None:
        """Let a host answer the semihosting calls of programs; None: they are breakpoints.

        A snapshot has no host files in it: they stay as they are.
        """
        self.check_open()
        self.semihosting = host
        if host is not None:
            host.attach(self.bus, self.clock)
        for core in self.cores:
            core.execution.host_call = None if host is None else HostCalls(core, self.read, host)

    # -- faults -------------------------------------------------------------------------------

    def explain(self, fault: DeviceFault, core: EmulatedCore) -> DeviceFault:
        """Return the fault with the registers of the core that raised it, and names of its code."""
        if fault.kind == "timeout" and core.mmio.polled_register:
            fault.detail += f", polling {core.mmio.polled_register}"
        if fault.kind in _TRAPS:
            fault.detail += rejected_jobs(self.shared.peripherals)
        fault.registers = core.registers()
        return self.names.explain(fault)

    # -- custom instructions ------------------------------------------------------------------

    def add_instructions(
        self,
        unit_name: str,
        instructions: Sequence[CustomInstruction],
        code: Callable[[], InstructionCode] | None = None,
    ) -> None:
        """Give a RISC-V core custom instructions; those of one unit share its state.

        The state (16 words) is zero now and after `reset`. Code memory holds something else in
        place of the instructions that were executed, which `read` and debuggers do not show, but
        loads of the program and `bus` do.

        Args:
            unit_name: for `remove_instructions` and `instruction_uses`.
            instructions: of the unit.
            code: makes what executes them; None: their C, or their models where there is none.

        Raises:
            DeviceError: not a RISC-V core, one of several cores, or the name or an encoding is
                taken.
            ToolchainError: C or RTL of the instructions cannot be compiled.
        """
        self.check_open()
        if len(self.cores) > 1:
            # the patches in memory are numbers that only one core's counter knows
            raise DeviceError(
                f"unit {unit_name}: custom instructions need a board with one core, this one has "
                f"{len(self.cores)}"
            )
        self.cores[0].custom.add(unit_name, instructions, code)

    def remove_instructions(self, unit_name: str) -> None:
        """Make those of ``unit_name`` illegal. Raises DeviceError where there is no such unit."""
        self.check_open()
        self.cores[0].custom.remove(unit_name)

    def instruction_uses(self, unit_name: str) -> dict[str, int]:
        """Return how often each instruction of ``unit_name`` retired since it was added: exact."""
        self.check_open()
        return self.cores[0].custom.uses(unit_name)

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> BoardState:
        """Return memory, cores, peripherals and time, for `load_state` of this very board.

        Raises:
            DeviceError: the board is closed or runs.
            AcceleratorError: a peripheral's state cannot be copied.
        """
        self._check_halted()
        state = BoardState(
            SavedMemory(self.memories, self.cores),
            self.clock.save_state(),
            self.shared.save_state(),
            tuple(core.save_state() for core in self.cores),
        )
        self._near = weakref.ref(state.memory)
        return state

    def load_state(self, state: object) -> None:
        """Go back to a saved state, from which programs run as before, to the instruction.

        Raises:
            DeviceError: the board is closed or runs, or has other peripherals or custom
                instructions than when the state was saved; or ``state`` is not from `save_state`.
        """
        if not isinstance(state, BoardState):
            raise DeviceError("this state was not saved by a virtual device")
        self._check_halted()
        self.shared.check_state(state.peripherals)
        for core, saved in zip(self.cores, state.cores, strict=True):
            core.load_state(saved)  # first, since it raises before it changes anything
        self.shared.load_state(state.peripherals)
        is_near = self._near is not None and self._near() is state.memory
        self._near = None  # until it is loaded
        state.memory.load(is_near)
        self._near = weakref.ref(state.memory)
        self.clock.load_state(state.clock)

    def _check_halted(self) -> None:
        self.check_open()
        for core in self.cores:
            if core.execution.running:
                raise DeviceError("the state cannot be saved or loaded while a core runs")


def core_sources(core: Core, platform: Platform) -> Sources:
    """Return where figures come from: instructions are counted, cycles estimated by a model.

    Args:
        core: the one that runs.
        platform: says the wait states of its memory.
    """
    timing = core_timing(core)
    assumes = ", ".join(filter(None, (timing.assumes, platform.wait_states)))
    error = None if platform.is_lower_bound else timing.errors.get(platform.wait_states)
    return Sources(EXACT, Source("estimated", timing.name, assumes, error))
