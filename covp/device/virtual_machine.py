"""`VirtualMachine`: what a program runs on: an emulated core, its memory, counters, peripherals."""

from __future__ import annotations

from collections.abc import Sequence

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc, uclib

from covp.device.base import PhaseCount
from covp.errors import DeviceError, PlatformError
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.interrupt import InterruptLine
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_models import load_peripheral
from covp.machine.counter import BlockRuns, Counter, Totals
from covp.machine.custom_instructions import CustomInstructions
from covp.machine.engine import (
    numbered_registers,
    open_engine,
    read_registers,
    register_ids,
    reset_core,
)
from covp.machine.execution import Execution
from covp.machine.instructions import RiscvCounters, checks_alignment, special_rules
from covp.machine.mmio import PAGE, PeripheralBus
from covp.machine.nvic import ARMV6M_LINES, Nvic
from covp.machine.riscv_interrupts import RiscvInterrupts
from covp.machine.system_control import DWT_BASE, SCS_BASE, Dwt, SystemControl
from covp.machine.watchpoints import Watchpoints
from covp.platform_file import Platform
from covp.symbols import Symbols
from covp.timing.tables import core_rules


class VirtualMachine:
    """The platform's core, memory and peripherals, emulated; `VirtualDevice` runs programs on it.

    `instructions` and `cycles` only ever grow: retired instructions are exact and the same on
    every run, cycles are estimated from published tables (`covp.timing.tables`) and include the
    time in which the core waited for peripherals. `counter_csrs` are RISC-V's views of both,
    `interrupts` is the core's interrupt controller.

    Raises:
        PlatformError: the emulator cannot hold the memory map.
    """

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.memories = [Memory.of(region) for region in platform.memory]
        self._arch = platform.core.architecture
        self._ids = register_ids(self._arch)
        self._thumb = 1 if self._arch == "arm" else 0
        self._engine: Uc | None = open_engine(platform.core)
        for memory in self.memories:
            self._map(memory)
        rules = (*special_rules(platform.core), *core_rules(platform.core))
        self._counter = Counter(
            self._engine._uch,
            uclib,
            self.memories,
            bool(self._thumb),
            rules,
            numbered_registers(platform.core) if checks_alignment(platform.core) else (),
        )
        self._custom = CustomInstructions(
            platform.core, self._engine, self._counter, self.memories, rules
        )
        self.clock = Clock(
            self._cycles_now, self._skip, platform.clock_hz, self._counter.limit_cycles
        )
        self.clock.phase = self._phase_now
        self.bus = Bus(self.memories, "host", self._forget_code)
        self._mmio = PeripheralBus(self._engine, self._counter, self.memories, self.bus, self.clock)
        self._watchpoints = Watchpoints(self._engine, self.memories)
        self.interrupts = self._make_interrupts()
        self.counter_csrs = RiscvCounters(
            lambda: self.cycles, lambda: self.instructions, lambda: self._pending_bits()
        )
        self._execution = Execution(
            platform,
            self._engine,
            self._counter,
            self._mmio,
            self._watchpoints,
            self.counter_csrs,
            self.clock,
            self.interrupts,
            self._custom,
        )
        self._mmio.interrupts_now = self._execution.interrupted_by_store
        self._symbols = Symbols()
        self._ranges: list[tuple[int, int, int]] = []
        if isinstance(self.interrupts, Nvic):
            self.attach(SystemControl(self.interrupts), SCS_BASE, "scs")
            if not platform.core.isa.is_armv6m:
                self.attach(Dwt(), DWT_BASE, "dwt")
        for config in platform.peripherals:
            model = load_peripheral(config.model, config.parameters)
            self.attach(model, config.base, config.name, config.irq)
        self.reset()

    def _make_interrupts(self) -> Nvic | RiscvInterrupts:
        core, engine = self.platform.core, self.engine
        if self._arch != "arm":
            return RiscvInterrupts(engine)
        small = core.isa.is_armv6m
        nvic = Nvic(engine, self.bus, 2 if small else 4, 15 if small else 12, core.has("fpu"))
        nvic.vector_table = self.platform.flash.start
        return nvic

    def _pending_bits(self) -> int:
        return self.interrupts.mip if isinstance(self.interrupts, RiscvInterrupts) else 0

    def close(self) -> None:
        """Free the emulator. A second call does nothing; any other call after it is an error."""
        if self._engine is not None:
            engine, self._engine = self._engine, None
            # Frees the emulator now, and not again when it is collected.
            engine._Uc__finalizer()  # type: ignore[attr-defined]
            self._counter.close()

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None and hasattr(self, "_counter"):
            self.close()

    # -- memory -------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        memory = self._memory(address, size)
        start = address - memory.region.start
        return self._custom.original(address, memory.bytes[start : start + size].tobytes())

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, in flash too; code that already ran there is forgotten."""
        memory = self._memory(address, len(data))
        start = address - memory.region.start
        self._custom.restore(address, len(data))
        memory.bytes[start : start + len(data)] = memoryview(data).cast("B")
        self._forget_code(address, len(data))

    def read_bus(self, address: int, size: int) -> bytes:
        """As `read`, or from a peripheral's registers, with the side effects of a load.

        Raises:
            DeviceError: nothing is there, or the peripheral refuses the access.
        """
        if self.bus.is_memory(address, size):
            return self.read(address, size)
        return b"".join(
            self._mmio.read(address + offset, min(4, size - offset)).to_bytes(
                min(4, size - offset), "little"
            )
            for offset in range(0, size, 4)
        )

    def write_bus(self, address: int, data: bytes) -> None:
        """As `write`, or to a peripheral's registers, with the effects of a store."""
        if self.bus.is_memory(address, len(data)):
            return self.write(address, data)
        for offset in range(0, len(data), 4):
            word = data[offset : offset + 4]
            self._mmio.write(address + offset, len(word), int.from_bytes(word, "little"))
        return None

    def _memory(self, address: int, size: int) -> Memory:
        for memory in self.memories:
            if memory.region.start <= address and address + size <= memory.region.end:
                return memory
        raise DeviceError(f"{size} bytes at 0x{address:08x} lie outside the memory map")

    def _map(self, memory: Memory) -> None:
        region = memory.region
        if region.start % PAGE or region.bytes % PAGE:
            raise PlatformError(
                f"memory {region.name}: the virtual device needs start and size in multiples of "
                f"{PAGE}, not 0x{region.start:x} and {region.bytes}"
            )
        permissions = uc.UC_PROT_READ | uc.UC_PROT_EXEC
        if region.kind == "ram":
            permissions = uc.UC_PROT_ALL
        self.engine.mem_map_ptr(region.start, region.bytes, permissions, memory.pointer)

    def _forget_code(self, address: int, size: int) -> None:
        if size:
            self.engine.ctl_remove_cache(address, address + size)

    # -- registers ----------------------------------------------------------------------------

    @property
    def engine(self) -> Uc:
        """The emulator. Raises DeviceError after `close`."""
        self._check_open()
        assert self._engine is not None
        return self._engine

    def _check_open(self) -> None:
        if self._engine is None:
            raise DeviceError("the device is closed")

    def read_register(self, name: str) -> int:
        """A register by the name a debugger shows: r0..r12, sp, lr, pc, xpsr; ra, sp, a0 ..."""
        return int(self.engine.reg_read(self._register(name)))

    def write_register(self, name: str, value: int) -> None:
        """Change a register."""
        if name == "pc" and self._execution.running:
            raise DeviceError("the pc cannot be changed while an instruction is carried out")
        self.engine.reg_write(self._register(name), value & 0xFFFFFFFF)

    def registers(self) -> dict[str, int]:
        """All general registers and the pc."""
        return read_registers(self.engine, self._arch)

    def _register(self, name: str) -> int:
        if name not in self._ids:
            raise DeviceError(f"no register {name!r}; there are {', '.join(self._ids)}")
        return self._ids[name]

    def reset(self) -> None:
        """Core registers, the state of custom instructions and peripherals to their reset state.

        Memory and counters are kept.

        The sp is put to the top of the stack, which start-up code may change.
        """
        top = self.platform.ram.start + self.platform.stack_bytes
        self.interrupts.reset()
        self._custom.reset()
        reset_core(self.engine, self.platform.core, top)
        self._mmio.reset()

    # -- counters -----------------------------------------------------------------------------

    @property
    def instructions(self) -> int:
        """Retired instructions since the device was made: exact."""
        return self._now().instructions

    @property
    def cycles(self) -> int:
        """Core cycles since the device was made, waiting included: an estimate."""
        return self._now().cycles

    def _now(self) -> Totals:
        if self._execution.running:  # inside a callback
            return self._counter.now(self._counter.block())
        return Totals(self._counter.state.instructions, self._counter.state.cycles)

    def _cycles_now(self) -> int:
        return self._now().cycles

    def _phase_now(self) -> tuple[int, int]:
        phase, origin = self._counter.phase()
        return phase, self.cycles - origin

    def _skip(self, cycles: int) -> None:
        self._counter.state.cycles += cycles

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """See `CountsByPhase.set_phases`; all phases start at zero."""
        cleared = [(address & ~self._thumb, phase) for address, phase in markers]
        self._ranges = []
        self._counter.set_markers(cleared, 1 + max((phase for _, phase in markers), default=0))

    def current_phase(self) -> int:
        """The phase that is current now, also after a fault."""
        return self._counter.phase()[0]

    def phase_counts(self) -> tuple[PhaseCount, ...]:
        """What every phase took since `set_phases`; empty before."""
        return tuple(
            PhaseCount(total.instructions, total.cycles) for total in self._counter.buckets()
        )

    def set_buckets(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Count by place: code in start <= address < end counts to ``bucket``, from now on.

        A called function counts to its own range, not to its caller's.
        """
        self._ranges = list(ranges)
        self._baseline = self._range_counts()

    def bucket_counts(self) -> list[tuple[int, int]]:
        """(instructions, cycles) of every bucket since `set_buckets`."""
        return [
            (now[0] - then[0], now[1] - then[1])
            for now, then in zip(self._range_counts(), self._baseline, strict=True)
        ]

    def _range_counts(self) -> list[tuple[int, int]]:
        counts = [[0, 0] for _ in range(1 + max(bucket for _, _, bucket in self._ranges))]
        for block in self._counter.blocks():
            for start, end, bucket in self._ranges:
                if start <= block.address < end:
                    counts[bucket][0] += block.instructions * block.count
                    counts[bucket][1] += block.cycles * block.count
        return [(instructions, cycles) for instructions, cycles in counts]

    def block_profile(self) -> dict[int, tuple[int, int]]:
        """Block address to (instructions spent in it, times it ran), since the device was made."""
        profile: dict[int, tuple[int, int]] = {}
        for block in self._counter.blocks():
            spent, runs = profile.get(block.address, (0, 0))
            profile[block.address] = (spent + block.instructions * block.count, runs + block.count)
        return profile

    def blocks(self) -> list[BlockRuns]:
        """Every translated block that ran, with its size, cost and count."""
        return self._counter.blocks()

    # -- debug information --------------------------------------------------------------------

    def add_debug_info(self, elf: str | bytes) -> None:
        """Name code in faults: an ELF file's path or content; read when a fault needs it."""
        self._symbols.add(elf)

    def remove_debug_info(self, elf: str | bytes) -> None:
        """Forget an ELF file given to `add_debug_info`."""
        self._symbols.remove(elf)

    def locate(self, address: int) -> tuple[str | None, str | None]:
        """("function+0x12", "file.c:12") of a code address; None where it is unknown."""
        return self._symbols.locate(address)

    @property
    def symbols(self) -> Symbols:
        """Names and source lines of the code."""
        return self._symbols

    # -- peripherals --------------------------------------------------------------------------

    @property
    def peripherals(self) -> dict[str, tuple[int, Peripheral]]:
        """Name to (base address, model)."""
        return self._mmio.peripherals

    def attach(self, peripheral: Peripheral, base: int, name: str, irq: int | None = None) -> None:
        """Put a peripheral on the bus, its interrupt on line ``irq``.

        Raises:
            PlatformError: its addresses or name are taken, or the core has no such line.
        """
        self._check_open()
        core = self.platform.core
        if irq is not None and core.isa.is_armv6m and irq >= ARMV6M_LINES:
            raise PlatformError(
                f"peripheral {name}: line {irq}; a {core.name} has {ARMV6M_LINES} interrupt lines"
            )
        line = InterruptLine(self.interrupts, irq, self._counter.request_stop)
        self._mmio.attach(peripheral, base, name, line)

    def detach(self, name: str) -> None:
        """Take a peripheral off the bus."""
        self._check_open()
        self._mmio.detach(name)

    # -- custom instructions ------------------------------------------------------------------

    def add_instructions(self, unit_name: str, instructions: Sequence[CustomInstruction]) -> None:
        """Give a RISC-V core custom instructions; those of one unit share its state.

        The state (16 words) is zero now and after `reset`. Code memory holds something else in
        place of the instructions that were executed, which `read` and debuggers do not show, but
        loads of the program and `bus` do.

        Raises:
            DeviceError: not a RISC-V core, the name or an encoding is taken.
            ToolchainError: an instruction's C cannot be compiled.
        """
        self._check_open()
        self._custom.add(unit_name, instructions)

    def remove_instructions(self, unit_name: str) -> None:
        """Take them away: they are illegal from now on. Raises DeviceError without such a unit."""
        self._check_open()
        self._custom.remove(unit_name)

    def instruction_uses(self, unit_name: str) -> dict[str, int]:
        """Custom instruction to how often it retired since it was added: exact."""
        self._check_open()
        return self._custom.uses(unit_name)
