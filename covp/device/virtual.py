"""`VirtualDevice`: a microcontroller on the Unicorn emulator, with exact instruction counts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence

from covp.device.base import EXACT, Abilities, PhaseCount, Source, Sources, Stop, name_fault
from covp.device.virtual_machine import VirtualMachine
from covp.errors import DeviceError, DeviceFault
from covp.hardware.job_unit import JobUnit
from covp.machine.counter import Totals
from covp.machine.watchpoints import Watch, WatchHit
from covp.platform_file import Platform

_TRAPS = frozenset({"illegal instruction", "breakpoint"})
_NOWHERE = 1 << 32  # no instruction lies there: a run without an end


class VirtualDevice(VirtualMachine):
    """Programs on the platform's emulated core: executed as a whole, or under a debugger's control.

    Args:
        platform: core, memory map and the peripherals to attach.
        timeout: default time limit of `execute`, in seconds of host time.

    Raises:
        PlatformError: the emulator cannot hold the memory map.
    """

    def __init__(self, platform: Platform, timeout: float = 300.0) -> None:
        self.timeout = timeout
        self._last_stop: int | None = None
        self._halt_requested = False
        self._breakpoints: frozenset[int] = frozenset()
        super().__init__(platform)

    def __enter__(self) -> VirtualDevice:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- LowLevelDevice -----------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """All but the state."""
        return Abilities(phases=self, hardware=self, names=self, time=self, closing=self)

    @property
    def sources(self) -> Sources:
        """Instructions are counted, cycles estimated by the core's timing table."""
        table = self.platform.core.timing or "one cycle per instruction"
        return Sources(EXACT, Source("estimated", table, "zero wait states"))

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
        entry, stop = entry & ~1, stop & ~1
        seconds = self.timeout if timeout is None else timeout
        deadline = self._begin(time.monotonic() + seconds)
        state = self._counter.state
        before, phases = self._now(), self.phase_counts()
        if stop != self._last_stop:
            # Code translated while another stop held may run past this one.
            self._execution.forget_code(stop, 4)
            self._last_stop = stop
        last = before.instructions + max_instructions if max_instructions is not None else None
        self._counter.start()
        pc = entry
        while pc != stop:
            pc = self._run(pc, stop, last)
            if pc == stop:
                break
            if self._execution.at_breakpoint:
                raise self._located(DeviceFault("breakpoint", pc=pc, detail="set by a debugger"))
            if last is not None and state.instructions >= last:
                raise self._located(
                    DeviceFault("timeout", pc=pc, detail=f"{max_instructions} instructions")
                )
            if time.monotonic() > deadline:
                raise self._located(
                    DeviceFault("timeout", pc=pc, detail=f"{seconds:g} seconds of host time")
                )
        return self._stopped(stop, before, phases)

    def _stopped(self, pc: int, before: Totals, phases: Sequence[PhaseCount]) -> Stop:
        """What was counted since ``before``, in all and by phase."""
        now = self._now()
        return Stop(
            pc,
            now.instructions - before.instructions,
            now.cycles - before.cycles,
            sources=self.sources,
            phases=tuple(
                PhaseCount(after.instructions - then.instructions, after.cycles - then.cycles)
                for after, then in zip(self.phase_counts(), phases, strict=True)
            ),
        )

    def _begin(self, deadline: float) -> float:
        self._check_open()
        if self._execution.running:
            raise DeviceError("the device is running already")
        self._mmio.deadline = deadline
        self._watchpoints.forget_hit()
        return deadline

    def _run(self, pc: int, stop: int, last: int | None) -> int:
        try:
            return self._execution.run(pc, stop, last)
        except DeviceFault as fault:
            raise self._located(fault) from fault.__cause__

    def _located(self, fault: DeviceFault) -> DeviceFault:
        if fault.kind == "timeout" and self._mmio.polling:
            fault.detail += f", polling {self._mmio.polling}"
        if fault.kind in _TRAPS:
            # what drivers do that are told of an error
            for name, (_, model) in self._mmio.peripherals.items():
                if isinstance(model, JobUnit) and model.refusal:
                    fault.detail += f"; {name} refused its job: {model.refusal}"
        fault.registers = self.registers()
        return name_fault(fault, self)

    # -- run control, for debuggers -----------------------------------------------------------

    def run(self, resumed: bool = True, watch: bool = False) -> bool:
        """Run from the pc until a breakpoint, a watched access or `request_halt`.

        The pc tells where the core stands; `watch_hit` whether an access ended the run.

        Args:
            resumed: a breakpoint at the pc itself does not count; False goes on after
                `request_halt`, where nobody has seen the core stand.
            watch: with ``resumed``, whether a watched access of the first instruction counts.

        Returns:
            False where `request_halt` ended it.

        Raises:
            DeviceFault: the program faulted (kind "breakpoint" for BKPT and EBREAK).
        """
        self._begin(math.inf)
        self._halt_requested = False
        if resumed:
            self._step_over_here(watch)
            if self.watch_hit is not None:
                return True
        pc = self.read_register("pc") & ~1
        while not self._halt_requested:
            pc = self._run(pc, _NOWHERE, None)
            if self._execution.at_breakpoint:
                return True
            self.engine.reg_write(self._register("pc"), pc | self._thumb)
        return False

    def step(self, watch: bool = False) -> None:
        """Carry out one instruction; breakpoints do not count. Raises DeviceFault.

        ``watch``: a watched access does count; `watch_hit` tells of it, and the core stays.
        """
        self._begin(math.inf)
        self._step_over_here(watch)

    def request_halt(self) -> None:
        """End `run` soon. To be called from another thread, again and again until it has ended."""
        self._halt_requested = True
        if self._engine is not None:
            self._counter.request_stop()

    @property
    def watch_hit(self) -> WatchHit | None:
        """The access that ended the latest `run`; the core stands in front of it."""
        return self._watchpoints.hit

    def set_breakpoints(self, addresses: Iterable[int]) -> None:
        """Halt in front of these instructions, in flash too; replaces the ones set before."""
        self._check_open()
        self._breakpoints = frozenset(address & ~self._thumb for address in addresses)
        self._counter.set_breakpoints(self._breakpoints)

    def set_watchpoints(self, watches: Iterable[Watch]) -> None:
        """Halt in front of these accesses of the core to memory; replaces the ones set before."""
        self._check_open()
        self._watchpoints.set(watches)

    def _step_over_here(self, watch: bool = False) -> None:
        """One instruction with all breakpoints (and watchpoints) out of the way."""
        self._counter.set_breakpoints(())
        self._watchpoints.suspended = not watch
        try:
            pc = self._execution.step(self.read_register("pc") & ~1)
            self.engine.reg_write(self._register("pc"), pc | self._thumb)
        except DeviceFault as fault:
            raise self._located(fault) from fault.__cause__
        finally:
            self._watchpoints.suspended = False
            self._counter.set_breakpoints(self._breakpoints)
