"""The interface of a device: four calls that every core has, and abilities that some add.

A device states its further abilities in `LowLevelDevice.abilities`, each an object of a Protocol
below or None. Callers look there and nowhere else, so that mypy sees every use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.base.memory_states import Finding, Forbidden
from covp.device.machine.native_caches import GhostCache
from covp.device.phase_count import PhaseCount
from covp.device.timeline import TimelineLog
from covp.device.timing.segments import Segments
from covp.device.timing.trace import Trace
from covp.device.wave import Recorded, Wave
from covp.errors import DeviceFault
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.peripheral import Peripheral


@dataclass(frozen=True)
class Source:
    """The origin of a figure.

    Attributes:
        kind: "exact" (counted by the emulator, the same on every run), "measured" (by a counter or
            clock of the machine that ran the program), "estimated" (by a timing model) or "rtl"
            (by the core's own RTL).
        model: name of the timing model, core or counter, e.g. "rv32", "DWT_CYCCNT"; "" for exact.
        assumes: what the figure leaves out, e.g. "zero wait states".
        error: largest known relative error, e.g. 0.003; None where it was never checked.
    """

    kind: Literal["exact", "measured", "estimated", "rtl"]
    model: str = ""
    assumes: str = ""
    error: float | None = None

    def __str__(self) -> str:
        by = f"{self.kind} by {self.model}" if self.model else self.kind
        return f"{by}, {self.assumes}" if self.assumes else by


EXACT = Source("exact")


@dataclass(frozen=True)
class Sources:
    """The sources of the figures of a `Stop`, and of everything that is made from it.

    Attributes:
        instructions, cycles, seconds: None where the device does not give the figure.
    """

    instructions: Source | None = None
    cycles: Source | None = None
    seconds: Source | None = None


NO_FIGURES = Sources()


@dataclass(frozen=True)
class Stop:
    """Why and where `LowLevelDevice.execute` came back.

    Attributes:
        pc: address of the next instruction, equal to the requested ``stop``.
        instructions: retired in this call; None where the device cannot count.
        cycles: core cycles of this call; None where unknown.
        seconds: run time of the program itself; None where the device cannot tell.
        sources: where these figures come from.
        phases: the counts of this call by phase, indexed by the phase's number; empty on devices
            that do not count by phase, or where no phases are set.
    """

    pc: int
    instructions: int | None = None
    cycles: int | None = None
    seconds: float | None = None
    sources: Sources = NO_FIGURES
    phases: tuple[PhaseCount, ...] = ()


class CountsByPhase(Protocol):
    """Counts apart what a program does between addresses, without instrumenting it."""

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """Entering the code at an address makes a phase the current one.

        Args:
            markers: (address, phase); an address must be one that is jumped to or called, such as
                a function. Phases are 0..N-1; phase 0 is current at the start of every `execute`.
        """
        ...

    def current_phase(self) -> int:
        """The phase that is current now, also after a fault."""
        ...


class ExplainsCycles(Protocol):
    """Knows what each cycle passed with: `PhaseCount.causes`."""

    def explain_cycles(self, on: bool) -> None:
        """Count causes (as by default), or totals alone, which is faster for short executions.

        Holds from the next `CountsByPhase.set_phases` on.
        """
        ...

    def count_functions(self, on: bool = True) -> None:
        """Count by function too (`PhaseCount.functions`), or no more.

        Holds from the next `CountsByPhase.set_phases` on, for what is loaded by then and has debug
        information.
        """
        ...


class CountsTraffic(Protocol):
    """Counts the bytes that core and accelerators move: `PhaseCount.traffic`."""

    def count_traffic(self) -> None:
        """Count from now on; the core's loads and stores are simulated more slowly from then on."""
        ...


class Recording(AbstractContextManager[object], Protocol):
    """A context whose executions are recorded; its file is written as a whole, or not at all."""

    @property
    def recorded(self) -> Recorded | None:
        """What is in the file; None before the end of the context, and where there is no file."""
        ...


class RecordsWaves(Protocol):
    """Writes the core's signals to a file."""

    def recording(self, wave: Wave, phase: int | None = None) -> Recording:
        """A context in which executions are recorded, with the same cycles as without.

        A program that faults leaves its cycles up to there.

        Args:
            wave: the file and the window.
            phase: one of `CountsByPhase.set_phases`: the window is in its cycles; None: in those of
                all phases but 0, of the whole execution where no phases are set.

        Raises:
            UsageError: the file cannot be written, or the window is beyond what was executed.
        """
        ...


class TimelineRecording(AbstractContextManager[object], Protocol):
    """A context that listens to what is executed."""

    @property
    def log(self) -> TimelineLog | None:
        """What happened; None before the end of the context."""
        ...


class RecordsTimeline(Protocol):
    """Knows when which function, job, access and interrupt was."""

    def record_timeline(self) -> TimelineRecording:
        """A context in which it is recorded what is executed, with the same cycles as without.

        A later `CountsByPhase.set_phases` in the context begins anew.

        Raises:
            UsageError: when it is entered, and another one is.
        """
        ...


class HostsHardware(Protocol):
    """Has a bus for Python models of hardware, and a core that takes custom instructions."""

    @property
    def peripherals(self) -> Mapping[str, tuple[int, Peripheral]]:
        """Name to (base address, model)."""
        ...

    def attach(self, peripheral: Peripheral, base: int, name: str, irq: int | None = None) -> None:
        """Put a model on the bus.

        Args:
            peripheral: the model.
            base: address of its first register.
            name: for faults and `detach`.
            irq: number of its interrupt line, from 0; None for none.

        Raises:
            PlatformError: its addresses or name are taken, or the core has no such line.
        """
        ...

    def detach(self, name: str) -> None:
        """Take a model off the bus."""
        ...

    def add_instructions(self, unit_name: str, instructions: Sequence[CustomInstruction]) -> None:
        """Give the core the instructions of a unit, which is called ``unit_name`` from then on.

        Raises:
            DeviceError: the core cannot have any, or the name or an encoding is taken.
        """
        ...

    def remove_instructions(self, unit_name: str) -> None:
        """Take the instructions of a unit away: they are illegal from then on."""
        ...

    def instruction_uses(self, unit_name: str) -> Mapping[str, int]:
        """Custom instruction to how often it retired since it was added."""
        ...


class NamesCode(Protocol):
    """Names functions and source lines in its faults, from debug information."""

    def add_debug_info(self, elf: str | bytes) -> None:
        """An ELF file's path or content."""
        ...

    def remove_debug_info(self, elf: str | bytes) -> None:
        """Forget a file that was added."""
        ...

    def locate(self, address: int) -> tuple[str | None, str | None]:
        """("function+0x12", "file.c:12") of a code address; None where it is unknown."""
        ...

    def call_stack(self, pc: int, registers: Mapping[str, int]) -> tuple[str, ...]:
        """The functions active at ``pc`` with ``registers``, by `covp.compilers.unwind`."""
        ...


class MeasuresTime(Protocol):
    """Gives cycles or seconds of what it executes."""

    @property
    def sources(self) -> Sources:
        """The sources of the figures in its `Stop`, known before anything is executed."""
        ...


class MemoryStates(Protocol):
    """What programs may do with each byte of a device's memory; at first they may not access it."""

    def trust(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Code in these ``ranges`` of addresses, each without its end, may do anything."""
        ...

    def set_return(self, address: int, result: Sequence[tuple[int, int]]) -> None:
        """Calls return to ``address``, with a ``result`` of registers and their bytes, as bits."""
        ...

    def set_stack(self, start: int, end: int, limit: int, above: int) -> None:
        """The stack is from ``start`` to before ``end``; a call may use ``limit`` bytes of it.

        ``above``: bytes of its arguments, which lie above them.
        """
        ...

    def set_heap(self, start: int, end: int, next_at: int) -> None:
        """From ``start`` on memory may be accessed up to the address that is stored at ``next_at``.

        None lies at or after ``end``.
        """
        ...

    def set(self, address: int, size: int, state: Forbidden) -> None:
        """Give ``size`` bytes from ``address`` a ``state``."""
        ...

    def state(self, address: int, size: int) -> NDArray[np.uint8]:
        """Of ``size`` bytes from ``address``, as numbers of `Forbidden`; shape (size,)."""
        ...

    def undefined(self, address: int, size: int) -> NDArray[np.uint8]:
        """The bits without a value of ``size`` bytes from ``address``; shape (size,)."""
        ...

    def origin(self, address: int) -> tuple[int, int]:
        """Where undefined bits that were stored at ``address`` were loaded from, and by which pc.

        (0, 0): not known.
        """
        ...

    def begin(self) -> None:
        """A run begins, with an empty stack."""
        ...

    @property
    def stack_bytes(self) -> int:
        """Of the stack in use at most since `begin`, without those of trusted code."""
        ...


class ChecksMemory(Protocol):
    """Sees every load and store, and can stop before those that are not allowed."""

    def check_memory(self, explain: Callable[[Finding], DeviceFault]) -> MemoryStates:
        """Check from now on; before anything was executed.

        Args:
            explain: the fault of an access that is not allowed.
        """
        ...


class SavesState(Protocol):
    """Can be put back into an earlier state."""

    def save_state(self) -> object:
        """Memory, registers, counters, clock, peripherals; opaque, for `load_state` only."""
        ...

    def load_state(self, state: object) -> None:
        """Go on from a state that this very device saved."""
        ...


class TracesCode(Protocol):
    """Counts how often each block of code ran, and where it went on."""

    def count_conditional(self, addresses: Iterable[int]) -> None:
        """Count from now on how often the conditions of these instructions hold: in IT blocks."""
        ...

    def conditional_counts(self) -> Mapping[int, int]:
        """How often each of them was executed since then, and not skipped."""
        ...

    def trace(self) -> Trace:
        """All that was executed so far; `Trace.since` gives a part of it."""
        ...

    def keep_segments(
        self, pace: Callable[[int], int], sizes: Sequence[GhostCache] = ()
    ) -> KeepsSegments:
        """Cut what is executed from now on where its path meets the time of units.

        Args:
            pace: the cycles that a job is to take, from those that its model says.
            sizes: caches of other sizes, whose misses are counted, too.
        """
        ...


class KeepsSegments(Protocol):
    """What was executed since `TracesCode.keep_segments`."""

    def end(self) -> None:
        """The last segment ends here."""
        ...

    def segments(self, trace: Trace) -> Segments:
        """All of them; ``trace``: `TracesCode.trace` of now."""
        ...


class Closable(Protocol):
    """Holds something that has to be let go: an emulator, a process, a connection."""

    def close(self) -> None:
        """Let it go. A second call does nothing; other calls after it are errors."""
        ...


@dataclass(frozen=True)
class Abilities:
    """The abilities of a device beyond read, write, execute and reset; None: it has not got it."""

    phases: CountsByPhase | None = None
    hardware: HostsHardware | None = None
    names: NamesCode | None = None
    time: MeasuresTime | None = None
    state: SavesState | None = None
    closing: Closable | None = None
    causes: ExplainsCycles | None = None
    traffic: CountsTraffic | None = None
    waves: RecordsWaves | None = None
    code: TracesCode | None = None
    memory: ChecksMemory | None = None
    timeline: RecordsTimeline | None = None


class LowLevelDevice(Protocol):
    """A core and its memory.

    Addresses are the core's; ``read`` and ``write`` act as a debugger does: they may write flash.
    """

    @property
    def abilities(self) -> Abilities:
        """Its further abilities; a class that derives from this one has none by default."""
        return Abilities()

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` from ``address`` on; code that already ran there is forgotten."""
        ...

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        """Run from ``entry`` until the pc reaches ``stop``.

        ``timeout`` is in seconds of host time; None means the device's default.
        Raises DeviceFault when the program faults or the time is over.
        """
        ...

    def reset(self) -> None:
        """Put the core and the peripherals into their reset state; memory is kept."""
        ...


def name_fault(fault: DeviceFault, device: LowLevelDevice) -> DeviceFault:
    """The fault with the symbol, source line and callers of its pc, where the device knows them."""
    names = device.abilities.names
    if names is not None and fault.pc is not None:
        fault.symbol, fault.source = names.locate(fault.pc)
        fault.call_stack = names.call_stack(fault.pc, fault.registers)
    return fault


def is_device(value: object) -> bool:
    """Whether a user's object has the members of a `LowLevelDevice`."""
    members = ("read", "write", "execute", "reset", "abilities")
    return all(hasattr(value, member) for member in members)
