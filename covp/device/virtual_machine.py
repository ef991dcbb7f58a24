"""`VirtualMachine`: a board as a program on its core 0 sees it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence

from unicorn.unicorn_py3.unicorn import Uc

from covp.base.memory_states import ForbiddenAccess
from covp.chip.platform_file import Platform
from covp.chip.platform_file.caches import GhostCache
from covp.compilers.symbols import Symbols
from covp.device.abilities import MemoryStates
from covp.device.board import Board, BoardState
from covp.device.counted_phases import CountedPhases
from covp.device.machine.emulated_core import EmulatedCore
from covp.device.machine.mark_log import MOST_MARKS
from covp.device.machine.native_caches import Ghosts
from covp.device.machine.riscv_csrs import RiscvCounters
from covp.device.machine.segments import SegmentLog
from covp.device.phase_count import PhaseCount
from covp.device.timeline_recorder import TimelineRecorder
from covp.device.timing.trace import Trace
from covp.errors import DeviceError, DeviceFault
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.peripheral import Peripheral


class VirtualMachine:
    """Core 0 of a board with the memory and peripherals; `VirtualDevice` runs programs on it.

    `instructions` and `cycles` only ever grow: retired instructions are exact and the same on
    every run, cycles are estimated by the core's timing model (`covp.device.timing`) and include
    the time in which the core waited for peripherals.

    Attributes:
        board, core: the parts.
        platform: of the board.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self.core: EmulatedCore = board.cores[0]
        self.platform: Platform = board.platform
        self._explains = True
        self._by_function = False
        self._function_names: tuple[str, ...] = ("",)
        self._executions: dict[int, ctypes.c_uint64] = {}

    def close(self) -> None:
        """Free the emulator. A second call does nothing; any other call after it is an error."""
        self.board.close()

    def reset(self) -> None:
        """Reset core registers, the state of custom instructions and peripherals.

        Memory and counters are kept. The sp is put to the top of the stack, which start-up code
        may change.
        """
        self.board.reset()

    # -- memory -------------------------------------------------------------------------------

    @property
    def memories(self) -> Sequence[Memory]:
        """The memory's regions and bytes."""
        return self.board.memories

    @property
    def bus(self) -> Bus:
        """The memory as a bus master sees it."""
        return self.board.bus

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        return self.board.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, in flash too; code that already ran there is forgotten."""
        self.board.write(address, data)

    def read_bus(self, address: int, size: int) -> bytes:
        """Read memory or a peripheral's registers; see `Board.read_bus`."""
        return self.board.read_bus(address, size)

    def write_bus(self, address: int, data: bytes) -> None:
        """Write memory or a peripheral's register; see `Board.write_bus`."""
        self.board.write_bus(address, data)

    # -- registers ----------------------------------------------------------------------------

    @property
    def engine(self) -> Uc:
        """The emulator. Raises DeviceError after `close`."""
        return self.core.engine

    @property
    def counter_csrs(self) -> RiscvCounters:
        """RISC-V's views of the counts."""
        return self.core.csrs

    def read_register(self, name: str) -> int:
        """Read a register by a debugger's name: r0..r12, sp, lr, pc, xpsr; ra, sp, a0 ..."""
        return self.core.read_register(name)

    def write_register(self, name: str, value: int) -> None:
        """Change a register."""
        self.core.write_register(name, value)

    def registers(self) -> dict[str, int]:
        """Return all general registers and the pc."""
        return self.core.registers()

    # -- time and counts ----------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The board's time."""
        return self.board.clock

    @property
    def instructions(self) -> int:
        """Retired instructions since the device was made: exact."""
        return self.core.instructions

    @property
    def cycles(self) -> int:
        """Core cycles since the device was made, waiting included: an estimate."""
        return self.core.cycles

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """Set the markers that phases begin at; all phases start at zero."""
        cleared = [(address & ~self.core.thumb, phase) for address, phase in markers]
        phases = 1 + max((phase for _, phase in markers), default=0)
        self._function_names = self._set_functions() if self._by_function else ("",)
        explains = self._explains or self._by_function or self.board.ledger is not None
        self.core.counter.explains = explains
        self.core.counter.set_markers(cleared, phases)
        for observer in self.board.bus.observers:
            observer.restarted()

    def record_timeline(self, most: int = MOST_MARKS) -> TimelineRecorder:
        """Record a timeline while the returned context is open.

        Args:
            most: marks of functions; where there are more, the shortest calls are left out.
        """
        self.board.check_open()
        return TimelineRecorder(self.board, lambda: self._function_names, most)

    def explain_cycles(self, on: bool) -> None:
        """Keep the causes of cycles from the next `set_phases` on, or no more."""
        self._explains = on

    def count_functions(self, on: bool = True) -> None:
        """Count by function from the next `set_phases` on, or no more."""
        if self._by_function and not on:
            self.core.counter.set_functions((), 1)
        self._by_function = on

    def _set_functions(self) -> tuple[str, ...]:
        """Let the counter know all functions; their names by number."""
        functions = self.symbols.functions()
        marks = {end: 0 for _, end, _ in functions}
        marks |= {start: number for number, (start, _, _) in enumerate(functions, 1)}
        self.core.counter.set_functions(tuple(marks.items()), 1 + len(functions))
        return ("", *(name for _, _, name in functions))

    def current_phase(self) -> int:
        """Return the phase that is current now, also after a fault."""
        return self.core.counter.phase()[0]

    def phase_counts(self) -> tuple[PhaseCount, ...]:
        """Return the counts of every phase since `set_phases`; empty before."""
        return self.counted_phases().counts()

    def counted_phases(self) -> CountedPhases:
        """Return the same as `phase_counts`, to be compared with a later one."""
        if not self.core.counter.explains:
            return CountedPhases(self.core.counter.buckets())
        memories = [memory.region.name for memory in self.core.memories]
        return CountedPhases.of(
            self.core.counter, self._function_names, memories, self.board.ledger
        )

    def count_traffic(self) -> None:
        """Count the bytes that the core and hardware move, by memory."""
        self.board.count_traffic()
        self.core.counter.look_at_accesses()
        self.core.engine.ctl_flush_tb()

    def trace_edges(self, on: bool = True) -> None:
        """Count from now on where returns and jumps to registers lead, or no more."""
        self.core.counter.trace_edges(on)

    def trace(self) -> Trace:
        """Return what the core executed so far, for timing by other models; see `Counter.trace`."""
        return self.core.counter.trace()

    def keep_segments(
        self, pace: Callable[[int], int], sizes: Sequence[GhostCache] = ()
    ) -> SegmentLog:
        """Record segments from now on; see `TracesCode.keep_segments`."""
        core = self.core
        ghosts = Ghosts(self.platform, sizes)
        log = core.counter.keep_segments(lambda: core.execution.running, pace, ghosts)
        core.engine.ctl_flush_tb()
        self.clock.witness = log
        return log

    def count_conditional(self, addresses: Iterable[int]) -> None:
        """Count executions of the conditional instructions at ``addresses`` from now on."""
        for address in addresses:
            if address not in self._executions:
                self._executions[address] = self.core.counter.count_executions(address)
                self.core.forget_code(address, 2)

    def conditional_counts(self) -> dict[int, int]:
        """Return how often each conditional instruction was executed, and not skipped."""
        return {address: count.value for address, count in self._executions.items()}

    # -- debug information --------------------------------------------------------------------

    @property
    def symbols(self) -> Symbols:
        """Names and source lines of the code."""
        return self.board.symbols

    def add_debug_info(self, elf: str | bytes) -> None:
        """Name code in faults: an ELF file's path or content; read when a fault needs it."""
        self.board.symbols.add(elf)

    def remove_debug_info(self, elf: str | bytes) -> None:
        """Forget an ELF file given to `add_debug_info`."""
        self.board.symbols.remove(elf)

    def locate(self, address: int) -> tuple[str | None, str | None]:
        """Return ("function+0x12", "file.c:12") of a code address; None where it is unknown."""
        return self.board.symbols.locate(address)

    def call_stack(self, pc: int, registers: Mapping[str, int]) -> tuple[str, ...]:
        """Return the functions active at ``pc`` with ``registers``, by `covp.compilers.unwind`."""
        return self.board.call_stack(pc, registers, self.core)

    # -- peripherals --------------------------------------------------------------------------

    @property
    def peripherals(self) -> dict[str, tuple[int, Peripheral]]:
        """Name to (base address, model)."""
        return self.board.peripherals

    def attach(self, peripheral: Peripheral, base: int, name: str, irq: int | None = None) -> None:
        """Put a peripheral on the bus, its interrupt on line ``irq``.

        Raises:
            PlatformError: its addresses or name are taken, or the core has no such line.
        """
        self.board.attach(peripheral, base, name, irq)

    def detach(self, name: str) -> None:
        """Take a peripheral off the bus."""
        self.board.detach(name)

    # -- custom instructions ------------------------------------------------------------------

    def add_instructions(self, unit_name: str, instructions: Sequence[CustomInstruction]) -> None:
        """Give a RISC-V core custom instructions; those of one unit share its state.

        The state (16 words) is zero now and after `reset`. Code memory holds something else in
        place of the instructions that were executed, which `read` and debuggers do not show, but
        loads of the program and `bus` do.

        Raises:
            DeviceError: not a RISC-V core, one of several cores, or the name or an encoding is
                taken.
            ToolchainError: an instruction's C cannot be compiled.
        """
        self.board.check_open()
        if len(self.board.cores) > 1:
            # the patches in memory are numbers that only one core's counter knows
            raise DeviceError(
                f"unit {unit_name}: custom instructions need a board with one core, this one has "
                f"{len(self.board.cores)}"
            )
        self.core.custom.add(unit_name, instructions)

    def remove_instructions(self, unit_name: str) -> None:
        """Take them away: they are illegal from now on. Raises DeviceError without such a unit."""
        self.board.check_open()
        self.core.custom.remove(unit_name)

    def instruction_uses(self, unit_name: str) -> dict[str, int]:
        """Return how often each custom instruction retired since it was added: exact."""
        self.board.check_open()
        return self.core.custom.uses(unit_name)

    # -- checks of memory ---------------------------------------------------------------------

    def check_memory(self, explain: Callable[[ForbiddenAccess], DeviceFault]) -> MemoryStates:
        """Check accesses to memory from now on; see `ChecksMemory.check_memory`."""
        self.board.check_open()
        return self.core.check_memory(explain)

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> object:
        """Return the state of the board."""
        return self.board.save_state()

    def load_state(self, state: object) -> None:
        """Restore a state of the board."""
        if not isinstance(state, BoardState):
            raise DeviceError("this state was not saved by a virtual device")
        self.board.load_state(state)
