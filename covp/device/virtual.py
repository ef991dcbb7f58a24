"""`VirtualDevice`: a microcontroller on the Unicorn emulator, with exact instruction counts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from covp.base.closing import Closing
from covp.chip.platform_file import FIRST, Platform
from covp.device.abilities import LONGEST_BLOCK, Abilities
from covp.device.board import Board, core_sources
from covp.device.core_counts import CoreCounts
from covp.device.counted_phases import CountedPhases
from covp.device.machine.counter import Totals
from covp.device.machine.emulated_core import EmulatedCore
from covp.device.machine.watchpoints import Watch
from covp.device.stop import Sources, Stop
from covp.errors import DeviceError, DeviceFault, FaultKind
from covp.hardware.clock import Clock
from covp.hardware.peripheral import Peripheral

_NOWHERE = 1 << 32  # no instruction lies there: a run without an end


class VirtualDevice(Closing):
    """A device that executes programs on a board's core 0, as a whole or under a debugger.

    Other cores of the board are halted; `covp.device.turns` runs several.

    Args:
        platform: core, memory map and the peripherals to attach, of which the first core alone is
            made; or a board.
        timeout: default time limit of `execute`, in seconds of host time.

    Attributes:
        board: memories, bus, clock and peripherals.
        core: its core 0, that programs run on: registers, interrupts, caches.
        counts: what is counted and recorded beside instructions and cycles.
        platform: of the board.

    Raises:
        PlatformError: the emulator cannot hold the memory map.
    """

    def __init__(self, platform: Platform | Board, timeout: float = 300.0) -> None:
        self.timeout = timeout
        self._last_stop: int | None = None
        self._breakpoints: frozenset[int] = frozenset()
        self.board = platform if isinstance(platform, Board) else Board(platform.seen_by(FIRST))
        self.core: EmulatedCore = self.board.cores[0]
        self.counts = CoreCounts(self.board)
        self.platform: Platform = self.board.platform

    def close(self) -> None:
        """Free the emulator. A second call does nothing; any other call after it is an error."""
        self.board.close()

    @functools.cached_property
    def abilities(self) -> Abilities:
        """The abilities of an emulated core."""
        return Abilities(
            phases=self.counts,
            hardware=self.board,
            names=self.board.names,
            time=self,
            state=self.board,
            closing=self,
            causes=self.counts,
            memory=self.core,
            traffic=self.counts,
            code=self.counts,
            timeline=self.counts,
            emulator=self,
        )

    @functools.cached_property
    def sources(self) -> Sources:
        """Instructions are counted, cycles estimated by the core's timing model."""
        return core_sources(self.core.core, self.platform)

    @property
    def clock(self) -> Clock:
        """The board's time."""
        return self.board.clock

    @property
    def instructions(self) -> int:
        """Retired instructions since the device was made: exact, and the same on every run."""
        return self.core.instructions

    @property
    def cycles(self) -> int:
        """Core cycles since the device was made: an estimate by `covp.device.timing`.

        Those in which the core waited for peripherals are included.
        """
        return self.core.cycles

    @property
    def peripherals(self) -> dict[str, tuple[int, Peripheral]]:
        """Name to (base address, model)."""
        return self.board.peripherals

    def attach(self, peripheral: Peripheral, base: int, name: str, irq: int | None = None) -> None:
        """Put a peripheral on the bus.

        Args:
            peripheral: the model.
            base: address of its first register.
            name: for faults.
            irq: number of its interrupt line, from 0; None for none.

        Raises:
            PlatformError: its addresses or name are taken, or the core has no such line.
        """
        self.board.attach(peripheral, base, name, irq)

    # -- LowLevelDevice -----------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        return self.board.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` from ``address`` on, in flash too; code there is forgotten."""
        self.board.write(address, data)

    def reset(self) -> None:
        """Reset core registers, the state of custom instructions and peripherals.

        Memory and counters are kept. The sp is put to the top of the stack, which start-up code
        may change.
        """
        self.board.reset()

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
            max_instructions: a limit that does not depend on the host. The run ends before the
                block of code in which it would be passed.

        Raises:
            DeviceFault: the program faulted, or a limit was passed (kind "timeout").
        """
        entry, stop = entry & ~1, stop & ~1
        seconds = self.timeout if timeout is None else timeout
        core = self.core
        self._start(stop, seconds)
        before = core.totals
        phases = self.counts.phases() if core.counter.has_phases else None
        last = before.instructions + max_instructions if max_instructions is not None else None
        pc = self._advance(entry, stop, last) if entry != stop else stop
        while pc != stop or core.sleep.is_asleep:
            if core.execution.at_breakpoint:
                raise self._explain("breakpoint", pc, "set by a debugger")
            if last is not None and core.counter.state.instructions >= last:
                raise self._explain("timeout", pc, f"{max_instructions} instructions")
            if core.control.is_late():
                raise self._explain("timeout", pc, f"{seconds:g} seconds of host time")
            pc = self._advance(pc, stop, last)
        core.counter.led_to(stop)
        return self._make_stop(stop, before, phases)

    def _start(self, stop: int, seconds: float) -> None:
        """Start a program, or go on with it, that runs until ``stop``."""
        self._begin(self.core.control.now() + seconds)
        if stop != self._last_stop:
            # Code translated while another stop held may run past this one.
            self.core.forget_code(stop, 4)
            self.core.counter.set_stop(stop)
            self._last_stop = stop
        self.core.counter.start()
        self.core.sleep.wake()

    def execute_some(
        self, entry: int, stop: int, instructions: int, longest: int = LONGEST_BLOCK
    ) -> int:
        """Run from ``entry`` until exactly this number of instructions has retired, or to ``stop``.

        The last ones are executed one by one, during which no interrupt is taken.

        Args:
            longest: instructions of the longest block of code on the way, where it is known: fewer
                are executed one by one then.

        Returns:
            the address of the next instruction, before which the core is; `execute` goes on there.

        Raises:
            DeviceFault: the program faulted, or the time was over (kind "timeout").
            DeviceError: there was a longer block.
        """
        pc, stop = entry & ~1, stop & ~1
        self._start(stop, self.timeout)
        goal = self.instructions + instructions
        while pc != stop and self.instructions <= goal - longest:
            pc = self._advance(pc, stop, goal - longest + 1)
            if self.core.control.is_late():
                raise self._explain("timeout", pc, f"{self.timeout:g} seconds of host time")
        while pc != stop and self.instructions < goal:
            pc = self._step(pc)
        if self.instructions > goal:
            raise DeviceError(f"a block of code has more than {longest} instructions")
        return pc

    def _step(self, pc: int) -> int:
        try:
            return self.core.execution.step(pc)
        except DeviceFault as fault:
            raise self.board.explain(fault, self.core) from fault.__cause__

    def _make_stop(self, pc: int, before: Totals, phases: CountedPhases | None) -> Stop:
        """Return the counts since ``before``, in all and by phase."""
        now = self.core.totals
        return Stop(
            pc,
            now.instructions - before.instructions,
            now.cycles - before.cycles,
            None,
            self.sources,
            self.counts.since(phases),
        )

    def _explain(self, kind: FaultKind, pc: int, detail: str) -> DeviceFault:
        return self.board.explain(DeviceFault(kind, pc=pc, detail=detail), self.core)

    def _begin(self, deadline: float) -> None:
        self.core.begin(deadline)
        self.board.activate([self.core])

    def _advance(self, pc: int, stop: int, last: int | None) -> int:
        try:
            return self.core.advance(pc, stop, last)
        except DeviceFault as fault:
            raise self.board.explain(fault, self.core) from fault.__cause__

    # -- run control, for debuggers -----------------------------------------------------------

    def run(self, resumed: bool = True, watch: bool = False) -> bool:
        """Run from the pc until a breakpoint, a watched access or `request_halt`.

        Afterwards the pc is the next instruction's; `core.watchpoints.hit` is the access that ended
        the run, if any. While it runs, input from outside may come: a program that waits is not at
        fault.

        Args:
            resumed: a breakpoint at the pc itself does not count, and WFI does not sleep on; False
                goes on after a `request_halt` that no debugger's user has seen.
            watch: with ``resumed``, whether a watched access of the first instruction counts.

        Returns:
            False where `request_halt` ended it.

        Raises:
            DeviceFault: the program faulted (kind "breakpoint" for BKPT and EBREAK).
        """
        self._begin(math.inf)
        with self.clock.outside():
            if resumed:
                self._step_over_here(watch)
                if self.core.watchpoints.hit is not None:
                    return True
            pc = self.core.read_register("pc") & ~1
            while not self.core.control.halt_requested:
                pc = self._advance(pc, _NOWHERE, None)
                if self.core.execution.at_breakpoint:
                    return True
                self.core.write_register("pc", pc)
        return False

    def step(self, watch: bool = False) -> None:
        """Execute one instruction; breakpoints do not count. Raises DeviceFault.

        ``watch``: a watched access counts; the core stays before it, and `core.watchpoints.hit` is
        set.
        """
        self._begin(math.inf)
        self._step_over_here(watch)

    def request_halt(self) -> None:
        """End `run` soon. To be called from another thread, again and again until it has ended."""
        self.core.request_halt()
        self.clock.wake()

    def set_breakpoints(self, addresses: Iterable[int]) -> None:
        """Halt before these instructions, in flash too; replaces the ones set before."""
        self.board.check_open()
        self._breakpoints = frozenset(address & ~self.core.thumb for address in addresses)
        self.core.counter.set_breakpoints(self._breakpoints)

    def set_watchpoints(self, watches: Iterable[Watch]) -> None:
        """Halt before these accesses of the core to memory; replaces the ones set before."""
        self.board.check_open()
        self.core.watchpoints.set(watches)

    def _step_over_here(self, watch: bool = False) -> None:
        """Execute one instruction with all breakpoints (and watchpoints) out of the way."""
        self.core.counter.set_breakpoints(())
        self.core.watchpoints.suspended = not watch
        self.core.sleep.wake()
        try:
            pc = self.core.execution.step(self.core.read_register("pc") & ~1)
            self.core.write_register("pc", pc)
        except DeviceFault as fault:
            raise self.board.explain(fault, self.core) from fault.__cause__
        finally:
            self.core.watchpoints.suspended = False
            self.core.counter.set_breakpoints(self._breakpoints)
