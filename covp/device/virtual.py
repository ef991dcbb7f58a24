"""`VirtualDevice`: a microcontroller on the Unicorn emulator, with exact instruction counts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc, UcError, uclib

from covp.device.base import Stop
from covp.errors import AcceleratorError, CovpError, DeviceError, DeviceFault, PlatformError
from covp.machine.bus import Bus, Memory
from covp.machine.clock import Clock
from covp.machine.counter import BlockRuns, Counter, Totals
from covp.machine.engine import (
    RISCV_NAMES,
    numbered_registers,
    open_engine,
    read_registers,
    register_ids,
    reset_core,
)
from covp.machine.faults import Ending, explain
from covp.machine.instructions import RiscvCounters, checks_alignment, is_armv6m, special_rules
from covp.machine.peripheral import Peripheral, load_peripheral
from covp.machine.symbols import Symbols
from covp.machine.system_control import DWT_BASE, SCS_BASE, Dwt, SystemControl
from covp.machine.timing import core_rules
from covp.platform_file import Platform

PAGE = 0x1000
# Instructions between two looks at the time limit and at Ctrl-C: well under a tenth of a second.
SLICE = 20_000_000
_ACCESSES_BETWEEN_LOOKS = 4096
_ACCESS_ERRORS = (
    uc.UC_ERR_READ_UNMAPPED,
    uc.UC_ERR_WRITE_UNMAPPED,
    uc.UC_ERR_FETCH_UNMAPPED,
    uc.UC_ERR_WRITE_PROT,
    uc.UC_ERR_READ_PROT,
    uc.UC_ERR_FETCH_PROT,
)
_ARM_HINTS = (0xBF10, 0xBF20)  # yield, wfe: the emulator stops behind them


class VirtualDevice:
    """The platform's core, memory and peripherals, emulated.

    `instructions` and `cycles` only ever grow: retired instructions are exact and the same on
    every run, cycles are estimated from published tables (`covp.machine.timing`) and include the
    time in which the core waited for peripherals.

    Args:
        platform: core, memory map and the peripherals to attach.
        timeout: default time limit of `execute`, in seconds of host time.

    Raises:
        PlatformError: the emulator cannot hold the memory map.
    """

    def __init__(self, platform: Platform, timeout: float = 300.0) -> None:
        self.platform = platform
        self.timeout = timeout
        self.memories = [Memory.of(region) for region in platform.memory]
        self._arch = platform.core.architecture
        self._ids = register_ids(self._arch)
        self._thumb = 1 if self._arch == "arm" else 0
        self._engine: Uc | None = open_engine(platform.core)
        for memory in self.memories:
            self._map(memory)
        self._counter = Counter(
            self._engine._uch,
            uclib,
            self.memories,
            bool(self._thumb),
            (*special_rules(platform.core), *core_rules(platform.core)),
            numbered_registers(platform.core) if checks_alignment(platform.core) else (),
        )
        self.clock = Clock(self._cycles_now, self._skip, platform.clock_hz)
        self.bus = Bus(self.memories, "host", self._forget_code)
        self.peripherals: dict[str, tuple[int, Peripheral]] = {}
        self._pages: dict[int, list[tuple[int, Peripheral]]] = {}
        self._symbols = Symbols()
        self._last_stop: int | None = None
        self._running = False
        self._pending: BaseException | None = None
        self._locating = False
        self._access_points: set[int] = set()
        self._last_access = (0, 0)
        self._deadline = 0.0
        self._accesses = 0
        self._ranges: list[tuple[int, int, int]] = []
        self._csrs = RiscvCounters(lambda: self.cycles, lambda: self.instructions)
        if self._arch == "arm":
            self.attach(SystemControl(), SCS_BASE, "scs")
            if not is_armv6m(platform.core):
                self.attach(Dwt(), DWT_BASE, "dwt")
        for config in platform.peripherals:
            self.attach(load_peripheral(config.model, config.parameters), config.base, config.name)
        self.reset()

    def __enter__(self) -> VirtualDevice:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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
        return memory.bytes[start : start + size].tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, in flash too; code that already ran there is forgotten."""
        memory = self._memory(address, len(data))
        start = address - memory.region.start
        memory.bytes[start : start + len(data)] = memoryview(data).cast("B")
        self._forget_code(address, len(data))

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
        if self._engine is None:
            raise DeviceError("the device is closed")
        return self._engine

    def read_register(self, name: str) -> int:
        """A register by the name a debugger shows: r0..r12, sp, lr, pc, xpsr; ra, sp, a0 ..."""
        return int(self.engine.reg_read(self._register(name)))

    def write_register(self, name: str, value: int) -> None:
        """Change a register."""
        if name == "pc" and self._running:
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
        """Core registers and peripherals to their reset state; memory and counters are kept.

        The sp is put to the top of the stack, which start-up code may change.
        """
        top = self.platform.ram.start + self.platform.stack_bytes
        reset_core(self.engine, self.platform.core, top)
        for _, peripheral in self.peripherals.values():
            peripheral.reset()

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
        if self._running:  # inside a callback
            return self._counter.now(self._counter.block())
        return Totals(self._counter.state.instructions, self._counter.state.cycles)

    def _cycles_now(self) -> int:
        return self._now().cycles

    def _skip(self, cycles: int) -> None:
        self._counter.state.cycles += cycles

    def set_markers(self, markers: Sequence[tuple[int, int]]) -> None:
        """Count by phase: entering the code at ``address`` makes ``bucket`` the current one.

        Args:
            markers: (address, bucket); an address must be one that is jumped to or called, such
                as a function. Buckets are 0..N-1. All buckets start at zero; bucket 0 is current
                now and at the start of every `execute`.
        """
        cleared = [(address & ~self._thumb, bucket) for address, bucket in markers]
        self._ranges = []
        self._counter.set_markers(cleared, 1 + max((bucket for _, bucket in markers), default=0))

    def set_buckets(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Count by place: code in start <= address < end counts to ``bucket``, from now on.

        A called function counts to its own range, not to its caller's.
        """
        self._ranges = list(ranges)
        self._baseline = self._range_counts()

    def bucket_counts(self) -> list[tuple[int, int]]:
        """(instructions, cycles) of every bucket since `set_markers` or `set_buckets`."""
        if not self._ranges:
            return [(total.instructions, total.cycles) for total in self._counter.buckets()]
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

    @property
    def symbols(self) -> Symbols:
        """Names and source lines of the code."""
        return self._symbols

    # -- peripherals --------------------------------------------------------------------------

    def attach(self, peripheral: Peripheral, base: int, name: str) -> None:
        """Put a peripheral on the bus.

        Raises:
            PlatformError: its addresses are taken, or the name is.
        """
        end = base + peripheral.size
        if name in self.peripherals:
            raise PlatformError(f"peripheral {name}: the name is used twice")
        for other, (start, model) in self.peripherals.items():
            if base < start + model.size and start < end:
                raise PlatformError(f"peripheral {name} at 0x{base:08x} overlaps {other}")
        for memory in self.memories:
            if base < memory.region.end and memory.region.start < end:
                raise PlatformError(
                    f"peripheral {name} at 0x{base:08x} overlaps memory {memory.region.name}"
                )
        self.peripherals[name] = (base, peripheral)
        for page in range(base & -PAGE, end, PAGE):
            if page not in self._pages:
                self._pages[page] = []
                self.engine.mmio_map(page, PAGE, self._on_load, page, self._on_store, page)
            self._pages[page].append((base, peripheral))
        peripheral.attach(name, self.bus.for_master(name), self.clock)

    def detach(self, name: str) -> None:
        """Take a peripheral off the bus."""
        base, peripheral = self.peripherals.pop(name)
        for page in range(base & -PAGE, base + peripheral.size, PAGE):
            self._pages[page].remove((base, peripheral))
            if not self._pages[page]:
                del self._pages[page]
                self.engine.mem_unmap(page, PAGE)

    def _on_load(self, engine: Uc, offset: int, size: int, page: int) -> int:
        try:
            base, peripheral = self._find_peripheral(page + offset, size, "unmapped read")
            offset += page - base
            if peripheral.needs_exact_time(offset, False) and not self._is_located():
                return 0
            value = peripheral.read_register(offset, size)
            self._look()
            return value
        except BaseException as error:
            self._fail(error, page + offset)
            return 0

    def _on_store(self, engine: Uc, offset: int, size: int, value: int, page: int) -> None:
        try:
            base, peripheral = self._find_peripheral(page + offset, size, "unmapped write")
            offset += page - base
            if peripheral.needs_exact_time(offset, True) and not self._is_located():
                return
            peripheral.write_register(offset, size, value & 0xFFFFFFFF)
            self._look()
        except BaseException as error:
            self._fail(error, page + offset)

    def _is_located(self) -> bool:
        """Whether the accessing instruction starts the running block, so that the time is exact.

        Inside a block the emulator does not tell the pc. Where it is needed the access is given
        up; the emulator then stops at the instruction, undone, and `_run` repeats it as the start
        of a block of its own.
        """
        block = self._counter.block()
        execution = (block, self._counter.state.instructions)
        if block in self._access_points and execution != self._last_access:
            self._last_access = execution
            return True
        self._locating = True
        self.engine.emu_stop()
        return False

    def _split_at_access(self, pc: int) -> int:
        """Let blocks end in front of the access at ``pc`` from now on."""
        block = self._counter.block()
        self._left_at(pc)
        self._locating = False
        self._access_points.add(pc)
        if block != pc:
            self._forget_code(pc, 2)
            self.engine.ctl_exits_enabled(True)
            self.engine.ctl_set_exits([pc])
            self.engine.ctl_request_cache(block | self._thumb)
            self.engine.ctl_exits_enabled(False)
        return pc

    def _find_peripheral(self, address: int, size: int, kind: str) -> tuple[int, Peripheral]:
        for base, peripheral in self._pages[address & -PAGE]:
            if base <= address < base + peripheral.size:
                return base, peripheral
        raise DeviceFault(kind, pc=0, address=address, size=size, detail="no peripheral there")

    def _fail(self, error: BaseException, address: int) -> None:
        """Keep what a peripheral raised until the emulator has returned."""
        if isinstance(error, DeviceFault) and error.kind == "register access":
            error.address = address
        elif isinstance(error, Exception) and not isinstance(error, CovpError):
            name = next(
                (name for name, (base, model) in self.peripherals.items()
                 if base <= address < base + model.size), "?",
            )  # fmt: skip
            cause, error = (
                error,
                AcceleratorError(
                    f"peripheral {name}: its model raised {error!r} at an access to 0x{address:08x}"
                ),
            )
            error.__cause__ = cause
        if self._pending is None:
            self._pending = error
        self.engine.emu_stop()

    def _look(self) -> None:
        """Every so many accesses: a polling loop must not outrun the time limit."""
        self._accesses += 1
        if self._accesses % _ACCESSES_BETWEEN_LOOKS == 0 and time.monotonic() > self._deadline:
            self._counter.request_stop()

    # -- running ------------------------------------------------------------------------------

    def execute(
        self,
        entry: int,
        stop: int,
        timeout: float | None = None,
        max_instructions: int | None = None,
    ) -> Stop:
        """Run from ``entry`` until the pc reaches ``stop``; bit 0 of both is ignored.

        Args:
            timeout: seconds of host time; None means the device's default.
            max_instructions: a limit that does not depend on the host. The run ends in front of
                the block of code in which it would be passed.

        Raises:
            DeviceFault: the program faulted, or a limit was passed (kind "timeout").
        """
        if self._running:
            raise DeviceError("the device is running already")
        entry, stop = entry & ~1, stop & ~1
        state = self._counter.state
        before = self._now()
        if stop != self._last_stop:
            # Code translated while another stop held may run past this one.
            self._forget_code(stop, 4)
            self._last_stop = stop
        seconds = self.timeout if timeout is None else timeout
        self._deadline = time.monotonic() + seconds
        last = before.instructions + max_instructions if max_instructions is not None else None
        self._counter.start()
        pc = entry
        while pc != stop:
            pc = self._run(pc, stop, last)
            if pc == stop:
                break
            if last is not None and state.instructions >= last:
                raise self._located(
                    DeviceFault("timeout", pc=pc, detail=f"{max_instructions} instructions")
                )
            if time.monotonic() > self._deadline:
                raise self._located(
                    DeviceFault("timeout", pc=pc, detail=f"{seconds:g} seconds of host time")
                )
        now = self._now()
        return Stop(stop, now.instructions - before.instructions, now.cycles - before.cycles)

    def _run(self, pc: int, stop: int, last: int | None) -> int:
        """One emu_start; returns the pc to go on from. Raises what ended the program."""
        counter = self._counter
        ceiling = counter.state.instructions + SLICE
        counter.begin(ceiling if last is None else min(ceiling, last))
        status = self._start(pc, stop)
        pc = self.read_register("pc") & ~self._thumb
        state = counter.state
        if self._pending is not None:
            error, self._pending = self._pending, None
            self._left_at(pc)
            if isinstance(error, DeviceFault):
                error.pc = error.pc or pc
                self._located(error)
            raise error
        if self._locating:
            return self._split_at_access(pc)
        if status == uc.UC_ERR_INSN_INVALID and counter.opcode(pc - 2) in _ARM_HINTS:
            self._left_at(pc)
            return pc
        if status or state.interrupt:
            raise self._fault(pc, status)
        if state.misaligned and state.special_pc == pc:
            raise self._misaligned(pc)
        if state.special:
            return (
                self._special(state.special_pc)
                if state.special_pc == pc
                else self._run(pc, self._split(state.special_pc), last)
            )
        if state.stopped or pc == stop:
            return pc
        self._left_at(pc)  # wfi: nothing can wake the core but time, so that it goes on
        return pc

    def _misaligned(self, pc: int) -> DeviceFault:
        state = self._counter.state
        return self._located(
            DeviceFault(
                "misaligned access",
                pc=pc,
                address=state.access_address,
                size=state.access_size,
                detail=f"a {self.platform.core.name} needs a multiple of {state.access_size} here",
            )
        )

    def _split(self, pc: int) -> int:
        """Make sure that translated code ends in front of ``pc``."""
        self._forget_code(pc, 2)
        return pc

    def _special(self, pc: int) -> int:
        """Carry out the instruction at ``pc`` that the emulator must not; returns the next pc."""
        bits = self._counter.opcode(pc)
        if self._arch == "riscv" and RiscvCounters.takes(bits):
            rs1, rd = bits >> 15 & 31, bits >> 7 & 31
            value = self._csrs.access(bits, self.read_register(RISCV_NAMES[rs1]))
            if value is not None:
                if rd:
                    self.write_register(RISCV_NAMES[rd], value)
                self._counter.count_one(pc, 4)
                return pc + 4
        detail = f"opcode 0x{bits:x}: {self.platform.core.name} does not have it"
        raise self._located(DeviceFault("illegal instruction", pc=pc, detail=detail))

    def _start(self, pc: int, stop: int) -> int:
        self._running = True
        try:
            self.engine.emu_start(pc | self._thumb, stop)
        except UcError as error:
            return int(error.errno)
        finally:
            self._running = False
        return 0

    def _left_at(self, pc: int) -> None:
        if not self._counter.state.fresh:
            self._counter.left_at(pc)

    def _fault(self, pc: int, status: int) -> DeviceFault:
        counter = self._counter
        if status in _ACCESS_ERRORS:
            self._left_at(pc)
            self._repeat_access(pc)
        fault = explain(self.platform, counter, Ending(pc, self.read_register("sp"), status))
        self._left_at(fault.pc)
        return self._located(fault)

    def _repeat_access(self, pc: int) -> None:
        """Let the instruction at ``pc`` fail once more, to learn its address and size."""
        counter = self._counter
        with counter.watching_accesses():
            self.engine.ctl_flush_tb()
            counter.begin(1 << 63)
            with contextlib.suppress(UcError):
                self.engine.emu_start(pc | self._thumb, 1 << 32, count=1)
        self.engine.ctl_flush_tb()

    def _located(self, fault: DeviceFault) -> DeviceFault:
        fault.symbol, fault.source = self._symbols.locate(fault.pc)
        fault.registers = self.registers()
        return fault
