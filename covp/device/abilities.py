"""`Abilities`: what a device may do besides read, write, execute and reset, each a Protocol.

Callers look into `Abilities` and nowhere else, so that mypy sees every use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from covp.base.memory_states import Forbidden, ForbiddenAccess
    from covp.chip.platform_file.caches import GhostCache
    from covp.device.board import Board
    from covp.device.code_names import CodeNames
    from covp.device.machine.emulated_core import EmulatedCore
    from covp.device.stop import Sources, Stop
    from covp.device.timeline import TimelineLog
    from covp.device.timing.segments import Segments
    from covp.device.timing.trace import Trace
    from covp.device.wave import Recorded, Wave
    from covp.errors import DeviceFault
    from covp.hardware.custom_instruction import CustomInstruction, InstructionCode
    from covp.hardware.peripheral import Peripheral

LONGEST_BLOCK = 512
"""Instructions that the emulator translates at once, at most."""


class CountsByPhase(Protocol):
    """A device that counts what a program does between addresses, without instrumenting it."""

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """Make a phase current whenever the code at an address is entered.

        Args:
            markers: (address, phase); an address must be one that is jumped to or called, such as
                a function. Phases are 0..N-1; phase 0 is current at the start of every `execute`.
        """
        ...

    def current_phase(self) -> int:
        """Return the phase that is current now, also after a fault."""
        ...


class ExplainsCycles(Protocol):
    """A device that attributes each cycle to a cause: `PhaseCount.causes`."""

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
    """A device that counts the bytes that core and accelerators move: `PhaseCount.traffic`."""

    def count_traffic(self) -> None:
        """Count from now on; the core's loads and stores are simulated more slowly from then on."""
        ...


class WaveRecording(AbstractContextManager[object], Protocol):
    """A context whose executions are recorded; its file is written as a whole, or not at all."""

    @property
    def recorded(self) -> Recorded | None:
        """The content of the file; None before the context ends, and where there is no file."""
        ...


class RecordsWaves(Protocol):
    """A device that writes the core's signals to a file."""

    def recording(self, wave: Wave, phase: int | None = None) -> WaveRecording:
        """Return a context in which executions are recorded, with the same cycles as without.

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
        """The log of events; None before the context ends."""
        ...


class RecordsTimeline(Protocol):
    """A device that logs when each function, job, access and interrupt took place."""

    def record_timeline(self) -> TimelineRecording:
        """Return a context that records what is executed, with the same cycles as without.

        A later `CountsByPhase.set_phases` in the context begins anew.

        Raises:
            UsageError: when it is entered, and another one is.
        """
        ...


class HostsHardware(Protocol):
    """A device with a bus for Python models of hardware, whose core takes custom instructions."""

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

    def add_instructions(
        self,
        unit_name: str,
        instructions: Sequence[CustomInstruction],
        code: Callable[[], InstructionCode] | None = None,
    ) -> None:
        """Give the core the instructions of a unit, which is called ``unit_name`` from then on.

        Args:
            unit_name: for `remove_instructions` and `instruction_uses`.
            instructions: of the unit.
            code: makes what executes them; None: their C, or their models where there is none.

        Raises:
            DeviceError: the core cannot have any, or the name or an encoding is taken.
        """
        ...

    def remove_instructions(self, unit_name: str) -> None:
        """Take the instructions of a unit away: they are illegal from then on."""
        ...

    def instruction_uses(self, unit_name: str) -> Mapping[str, int]:
        """Return how often each custom instruction has retired since it was added."""
        ...


class MeasuresTime(Protocol):
    """A device that reports cycles or seconds of what it executes."""

    @property
    def sources(self) -> Sources:
        """The sources of the figures in its `Stop`, known before anything is executed."""
        ...


class MemoryStates(Protocol):
    """The states of each byte of a device's memory; at first programs may not access it."""

    def trust(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Let code in ``ranges`` of addresses, each without its end, do anything."""
        ...

    def set_return(self, address: int, result: Sequence[tuple[int, int]]) -> None:
        """Set the address calls return to, and a ``result``: registers and their bytes, as bits."""
        ...

    def set_stack(self, start: int, end: int, limit: int, above: int) -> None:
        """Set the stack from ``start`` to before ``end``; a call may use ``limit`` bytes of it.

        ``above``: bytes of its arguments, which lie above them.
        """
        ...

    def set_heap(self, start: int, end: int, next_at: int) -> None:
        """Permit access from ``start`` up to the address that is stored at ``next_at``.

        None lies at or after ``end``.
        """
        ...

    def set(self, address: int, size: int, state: Forbidden) -> None:
        """Give ``size`` bytes from ``address`` a ``state``."""
        ...

    def state(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return `Forbidden` numbers of ``size`` bytes from ``address``; shape (size,)."""
        ...

    def undefined_bits(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return the bits without a value of ``size`` bytes from ``address``; shape (size,)."""
        ...

    def origin(self, address: int) -> tuple[int, int]:
        """Return where undefined bits stored at ``address`` were loaded from, and by which pc.

        (0, 0): not known.
        """
        ...

    def begin(self) -> None:
        """Begin a run, with an empty stack."""
        ...

    @property
    def stack_bytes(self) -> int:
        """The largest size of the stack in bytes since `begin`, without that of trusted code."""
        ...


class ChecksMemory(Protocol):
    """A device that sees every load and store, and can stop before forbidden ones."""

    def check_memory(self, explain: Callable[[ForbiddenAccess], DeviceFault]) -> MemoryStates:
        """Check from now on; before anything was executed.

        Args:
            explain: the fault of an access that is not allowed.
        """
        ...


class SavesState(Protocol):
    """A device that can return to an earlier state."""

    def save_state(self) -> object:
        """Return memory, registers, counters, clock and peripherals as input of `load_state`."""
        ...

    def load_state(self, state: object) -> None:
        """Go on from a state that this very device saved."""
        ...


class TracesCode(Protocol):
    """A device that counts how often each block of code ran, and where it went on."""

    def count_conditional(self, addresses: Iterable[int]) -> None:
        """Count from now on how often the conditions of these instructions hold: in IT blocks."""
        ...

    def conditional_counts(self) -> Mapping[int, int]:
        """Return how often each was executed since then, and not skipped."""
        ...

    def trace(self) -> Trace:
        """Return all that was executed so far; `Trace.since` gives a part of it."""
        ...

    def keep_segments(
        self, pace: Callable[[int], int], shapes: Sequence[GhostCache] = ()
    ) -> KeepsSegments:
        """Cut what is executed from now on where its path meets the time of units.

        Args:
            pace: the cycles that a job is to take, from those that its model says.
            shapes: caches of other shapes, whose misses are counted, too.
        """
        ...


class KeepsSegments(Protocol):
    """A recording of what was executed since `TracesCode.keep_segments`."""

    def end(self) -> None:
        """End the last segment here."""
        ...

    def segments(self, trace: Trace) -> Segments:
        """Return all of them; ``trace``: `TracesCode.trace` of now."""
        ...


class Emulator(Protocol):
    """An emulated core, which can be stopped after any instruction and looked into.

    For checks that no real board can make; whatever one could is an ability of its own.

    Attributes:
        board: memories, peripherals and time.
        core: registers, interrupts and counters.
    """

    board: Board
    core: EmulatedCore

    def execute(
        self,
        entry: int,
        stop: int,
        timeout: float | None = None,
        max_instructions: int | None = None,
    ) -> Stop:
        """Run as `LowLevelDevice.execute` does, with another limit.

        Args:
            entry, stop, timeout: as there.
            max_instructions: a limit that does not depend on the host.
        """
        ...

    def execute_some(self, entry: int, stop: int, instructions: int, longest: int = ...) -> int:
        """Run from ``entry`` until exactly ``instructions`` have retired, or to ``stop``.

        Args:
            longest: instructions of the longest block of code on the way, where it is known.

        Returns:
            the address of the next instruction; `execute` continues there.
        """
        ...


class Closable(Protocol):
    """An owner of a resource that must be closed: an emulator, a process, a connection."""

    def close(self) -> None:
        """Let it go. A second call does nothing; other calls after it are errors."""
        ...


@dataclass(frozen=True)
class Abilities:
    """The abilities of a device beyond read, write, execute and reset; None: not available.

    Attributes:
        names: functions and source lines of the code on it.
    """

    phases: CountsByPhase | None = None
    hardware: HostsHardware | None = None
    names: CodeNames | None = None
    time: MeasuresTime | None = None
    state: SavesState | None = None
    closing: Closable | None = None
    causes: ExplainsCycles | None = None
    traffic: CountsTraffic | None = None
    waves: RecordsWaves | None = None
    code: TracesCode | None = None
    memory: ChecksMemory | None = None
    timeline: RecordsTimeline | None = None
    emulator: Emulator | None = None
