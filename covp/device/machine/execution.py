"""`Execution`: runs an emulated core, and does the parts that the emulator leaves to its host."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc

from covp.base.memory_states import ForbiddenAccess
from covp.chip.cores import Core
from covp.chip.isa.riscv import RISCV
from covp.device.machine.counter import NOWHERE, Counter
from covp.device.machine.custom_instructions import CustomInstructions
from covp.device.machine.engine import register_ids
from covp.device.machine.faults import FaultReader
from covp.device.machine.instructions import MRET, is_wait_for_interrupt, may_unmask
from covp.device.machine.mmio import MmioPort
from covp.device.machine.nvic import Nvic
from covp.device.machine.riscv_csrs import RiscvCounters
from covp.device.machine.run_control import Sleep
from covp.device.machine.shadow import Shadow
from covp.device.machine.watchpoints import Watchpoints
from covp.errors import DeviceFault
from covp.hardware.clock import Clock
from covp.hardware.interrupt import InterruptController

# Instructions between two checks of the time limit and Ctrl-C: well under a tenth of a second.
SLICE = 20_000_000
_ARM_HINTS = (0xBF10, 0xBF20)  # yield, wfe: the emulator stops after them


class RunEnd(NamedTuple):
    """The way the emulator came back from a run.

    Attributes:
        pc: where it stopped, even.
        status: Unicorn's error number; 0: none.
        stop, last, masked: the limits of the run; see `Execution.run`.
    """

    pc: int
    status: int
    stop: int
    last: int | None
    masked: bool


class Execution:
    """The emulator and counter of one core and the parts around them, run together.

    Attributes:
        running: an instruction is being executed.
        at_breakpoint: the latest `run` ended before a breakpoint or watched access.
        turn_end: the cycle of the clock at which the core has to let others run, or None.
        host_call: called with the address of a BKPT or EBREAK that ended a run: where to go on,
            at the same instruction to repeat it, or None for a breakpoint. None: all are.
    """

    def __init__(
        self,
        core: Core,
        engine: Uc,
        counter: Counter,
        mmio: MmioPort,
        watchpoints: Watchpoints,
        csrs: RiscvCounters,
        clock: Clock,
        interrupts: InterruptController,
        custom: CustomInstructions,
        faults: FaultReader,
        sleep: Sleep,
        divider: int = 1,
    ) -> None:
        self.running = False
        self.at_breakpoint = False
        self.turn_end: int | None = None
        self.host_call: Callable[[int], int | None] | None = None
        self._shadow: Shadow | None = None
        self._explain: Callable[[ForbiddenAccess], DeviceFault]
        self._host_waits = False
        self._has_splits = False
        self._core, self._engine, self._counter = core, engine, counter
        self._mmio, self._watchpoints, self._csrs = mmio, watchpoints, csrs
        self._clock, self._interrupts, self._custom = clock, interrupts, custom
        self._faults, self._sleep = faults, sleep
        self._divider = divider  # cycles of the clock per cycle of the core
        self._nvic = interrupts if isinstance(interrupts, Nvic) else None
        self._ids = register_ids(core.architecture)
        self._is_arm = core.architecture == "arm"
        self._thumb = 1 if self._is_arm else 0
        self._wfi_bytes = 2 if self._is_arm else 4
        # The first step that knows why the run ended decides; each relies on those before it.
        self._steps: tuple[Callable[[RunEnd], int | None], ...] = (
            # The core stopped before an access that is not allowed, or before a block with a use of
            # what was never written. Nothing else has happened.
            self._raise_violation,
            # The same before a misaligned access.
            self._raise_misalignment,
            # A model's error comes first: the emulator's status after it is only how it stopped.
            self._raise_model_error,
            # The store is done although the pc is still at it. It must be passed before anything
            # compares the pc, or the store would be repeated.
            self._pass_store,
            # As after a store the access is done, but it is undone here. Before `_split_at_access`:
            # a watched access needs no exact time.
            self._stop_at_watchpoint,
            # The access was given up. Before the emulator's status, which is that of any stop.
            self._split_at_access,
            # Errors of the emulator that are none of the program's: hints that it stops at, ...
            self._pass_hint,
            # ... the fetch from EXC_RETURN, which is an exception return, ...
            self._return_from_exception,
            # ... and the exception at a custom instruction that is executed for the first time.
            self._meet_custom_instruction,
            # Whatever error is left is the program's, or a call of its host.
            self._call_host,
            self._raise_fault,
            # No error: the counter stopped before an instruction that needs the host, ...
            self._attend,
            # ... or because code has to be translated anew, ...
            self._translate_again,
            # ... or for a limit, an event, a request. ...
            self._pass_limit,
            # ... Else the emulator itself ended the run: at `stop`, or after a WFI.
            self._fall_asleep,
        )

    def forget_code(self, address: int, size: int) -> None:
        """Forget code translated from bytes that changed, or before which blocks have to end."""
        if size and self._counter.may_have_code(address, size):
            self._engine.ctl_remove_cache(address, address + size)

    def forget_splits(self) -> None:
        """Forget translated code where blocks end at places that they need not end at."""
        if self._has_splits:
            self._engine.ctl_flush_tb()
            self._has_splits = False

    def limit_cycles(self, cycle: int) -> None:
        """Stop the run before the first block at that cycle of the clock; thread-safe."""
        end = self.turn_end
        self._counter.limit_cycles(self._own_cycle(cycle if end is None else min(cycle, end)))

    def _own_cycle(self, cycle: int) -> int:
        """Return the core's first cycle that does not lie before one of the clock."""
        return -(-cycle // self._divider)

    # -- one run ------------------------------------------------------------------------------

    def run(
        self,
        pc: int,
        stop: int,
        last: int | None,
        masked: bool = False,
        allowed: int = NOWHERE,
        exactly: bool = False,
    ) -> int:
        """Run until ``stop``, for a slice of time, or until something needs attention.

        Args:
            pc, stop: even addresses.
            last: do not pass this total of instructions; None: no limit.
            masked: no interrupt comes first, and no event ends the run.
            allowed: a special instruction there is left to the emulator.
            exactly: see `Counter.run`.

        Returns:
            the pc to go on from; after a WFI `Sleep.wfi` is set.

        Raises:
            DeviceFault, or the exception of a peripheral's model, which ended the program.
        """
        self.at_breakpoint = self._host_waits = False
        if not masked:
            pc = self._dispatch(pc)
            if pc == stop:
                return pc
        state = self._counter.state
        ceiling = state.instructions + SLICE
        limit = None if masked else self._cycle_limit()
        self._counter.begin(ceiling if last is None else min(ceiling, last), limit, allowed)
        if self._clock.has_posted and not masked:
            return pc  # posted before the limit was set, which has undone the notice
        status = self._start(pc, stop, exactly)
        pc = state.pc
        self._custom.raise_error()
        if state.plain_end and not self._mmio.has_stopped and self._watchpoints.hit is None:
            return pc
        if state.pending:
            self._counter.settle(pc)
        end = RunEnd(pc, status, stop, last, masked)
        for step in self._steps:
            next_pc = step(end)
            if next_pc is not None:
                return next_pc
        return pc

    def _dispatch(self, pc: int) -> int:
        """Fire due events, and enter the pending interrupt, if any."""
        self._clock.run_due()
        entry = self._pass_cycles(self._interrupts.take, pc)
        if entry != pc:
            self._counter.led_to(pc)
        return entry

    def _pass_cycles(self, work: Callable[[int], int], pc: int) -> int:
        """Enter or leave an exception: count its cycles, but no instruction."""
        if self._nvic is None:
            return work(pc)
        before = self._nvic.cycles_spent
        pc = work(pc)
        spent = self._nvic.cycles_spent - before
        if spent:
            self._counter.enter_exception(spent)
        return pc

    def _cycle_limit(self) -> int | None:
        due, end = self._clock.next_event, self.turn_end
        cycles = [cycle for cycle in (due, end) if cycle is not None]
        return self._own_cycle(min(cycles)) if cycles else None

    def _start(self, pc: int, stop: int, exactly: bool) -> int:
        engine = self._engine
        engine._hook_exception = None
        self.running = True
        try:
            status = self._counter.run(pc | self._thumb, stop, exactly)
        finally:
            self.running = False
        if not status and engine._hook_exception is not None:
            raise engine._hook_exception  # Ctrl-C in a callback
        return status

    # -- the steps after it, in their order ---------------------------------------------------

    def check_memory(
        self, shadow: Shadow, explain: Callable[[ForbiddenAccess], DeviceFault]
    ) -> None:
        """Make accesses that the shadow does not allow faults from now on."""
        self._shadow, self._explain = shadow, explain

    def _raise_violation(self, end: RunEnd) -> None:
        finding = self._shadow.finding() if self._shadow is not None else None
        if finding is None:
            return
        if not self._counter.state.stopped:
            self._left_at(end.pc)
        fault = self._explain(finding)
        fault.address, fault.size = finding.address, finding.size
        raise fault

    def _raise_misalignment(self, end: RunEnd) -> None:
        if self._counter.state.misaligned:
            self._left_at(end.pc)
            raise self._faults.misaligned_fault(end.pc)

    def _raise_model_error(self, end: RunEnd) -> None:
        error = self._mmio.take_error()
        if error is None:
            return
        self._left_at(end.pc)
        if isinstance(error, DeviceFault) and error.pc is None:
            error.pc = end.pc
        raise error

    def _pass_store(self, end: RunEnd) -> int | None:
        """Go on after a store at which the emulator stopped as an interrupt comes next."""
        if not self._mmio.take_store_stop():
            return None
        after = end.pc + self._size(end.pc)
        self._left_at(after)
        return after

    def _stop_at_watchpoint(self, end: RunEnd) -> int | None:
        if not self._watchpoints.stopped_at(end.pc):
            return None
        self._left_at(end.pc)
        self.at_breakpoint = True
        return end.pc

    def _split_at_access(self, end: RunEnd) -> int | None:
        """Let blocks end before the peripheral's access at the pc from now on."""
        if not self._mmio.locating:
            return None
        pc, block = end.pc, self._counter.block()
        self._left_at(pc)
        self._mmio.mark_block_start(pc)
        if block != pc:
            self.forget_code(pc, 2)
            self._engine.ctl_exits_enabled(True)
            self._engine.ctl_set_exits([pc])
            # without the Thumb bit, unlike `emu_start`: blocks are kept by their address
            self._engine.ctl_request_cache(block)
            self._engine.ctl_exits_enabled(False)
            self._has_splits = True
        return pc

    def _pass_hint(self, end: RunEnd) -> int | None:
        if end.status != uc.UC_ERR_INSN_INVALID:
            return None
        if self._counter.opcode(end.pc - 2) not in _ARM_HINTS:
            return None
        self._left_at(end.pc)
        return end.pc

    def _return_from_exception(self, end: RunEnd) -> int | None:
        if self._nvic is None or not self._nvic.is_return(end.pc):
            return None
        self._left_at(end.pc)
        return self._pass_cycles(self._nvic.leave, end.pc)

    def _meet_custom_instruction(self, end: RunEnd) -> int | None:
        interrupt = self._counter.state.interrupt
        if not interrupt or not self._custom.meet(end.pc - 4, interrupt - 1):
            return None
        self._left_at(end.pc - 4)
        return end.pc - 4

    def _call_host(self, end: RunEnd) -> int | None:
        if self.host_call is None or not (end.status or self._counter.state.interrupt):
            return None
        fault = self._faults.fault(end.pc, self._register("sp"), end.status)
        if fault.kind != "breakpoint" or fault.pc is None:
            return None
        self._left_at(fault.pc)
        after = self.host_call(fault.pc)
        self._host_waits = after == fault.pc
        if after is not None and after != fault.pc:
            self._counter.count_one(fault.pc, after - fault.pc)
        return after

    def _raise_fault(self, end: RunEnd) -> None:
        if not end.status and not self._counter.state.interrupt:
            return
        fault = self._faults.fault(end.pc, self._register("sp"), end.status)
        if fault.kind == "misaligned access" and fault.address is not None:
            self._counter.look_at_load(end.pc, fault.address, fault.size or 0)
        self._left_at(end.pc if fault.pc is None else fault.pc)
        raise fault

    def _attend(self, end: RunEnd) -> int | None:
        """Handle a stop of the counter before an instruction that is not to be run as it is."""
        state, pc = self._counter.state, end.pc
        if not state.special:
            return None
        if state.special_pc != pc:
            # code translated from now on ends before it
            self.forget_code(pc, state.special_pc + 2 - pc)
            return self.run(pc, state.special_pc, end.last, end.masked, exactly=True)
        if state.breakpoint:
            self.at_breakpoint = True
            return pc
        return self._execute_special(pc)

    def _translate_again(self, end: RunEnd) -> int | None:
        """Forget the next block's translation if a hook was added to it; return its pc, or None."""
        if not self._counter.state.retranslate:
            return None
        self.forget_code(self._counter.state.retranslate_pc, 2)
        return end.pc

    def _pass_limit(self, end: RunEnd) -> int | None:
        return end.pc if self._counter.state.stopped else None

    def _fall_asleep(self, end: RunEnd) -> None:
        wfi = end.pc - self._wfi_bytes
        is_wfi = is_wait_for_interrupt(self._core, self._counter.opcode(wfi))
        if is_wfi and self._counter.ran_last(wfi):
            self._sleep.wfi = wfi
        if end.pc != end.stop:
            self._left_at(end.pc)

    # -- one instruction ----------------------------------------------------------------------

    def step(self, pc: int) -> int:
        """Execute the one instruction at ``pc``, interrupts masked; returns the next pc."""
        before = self._counter.state.instructions
        after = pc + self._size(pc)
        if not self._counter.opcode(pc):
            self._engine.ctl_flush_tb()  # an end of a run outside the memory has no address there
        while True:
            self.forget_code(pc, 6)
            next_pc = self.run(pc, after, before + 1, masked=True)
            if self._sleep.is_asleep:
                self._sleep.wait()
            retired = self._counter.state.instructions > before
            if retired or next_pc != pc or self.at_breakpoint or self._host_waits:
                self.forget_code(pc, 6)
                return next_pc

    def _size(self, pc: int) -> int:
        """Return the bytes of the instruction at ``pc``."""
        bits = self._counter.opcode(pc)
        is_short = bits <= 0xFFFF if self._is_arm else bits & 3 != 3
        return 2 if is_short else 4

    def _execute_special(self, pc: int) -> int:
        """Execute the instruction at ``pc`` that the emulator must not; returns the next pc."""
        bits, size = self._counter.opcode(pc), self._size(pc)
        if may_unmask(self._core, size, bits):
            if bits == MRET and self._interrupts.on_return is not None:
                self._interrupts.on_return()
            self.forget_code(pc, 6)
            last = self._counter.state.instructions + 1
            return self.run(pc, pc + size, last, masked=True, allowed=pc, exactly=True)
        if not self._is_arm and RiscvCounters.takes(bits):
            rs1, rd = bits >> 15 & 31, bits >> 7 & 31
            value = self._csrs.access(bits, self._register(RISCV.registers[rs1]))
            if value is not None:
                if rd:
                    self._engine.reg_write(self._ids[RISCV.registers[rd]], value)
                self._counter.count_one(pc, 4)
                return pc + 4
        if not self._is_arm:
            address = self._register(RISCV.registers[bits >> 15 & 31])
            if self._counter.data_cache.execute(bits, address):
                self._counter.count_one(pc, 4)
                return pc + 4
        raise self._faults.illegal(pc)

    def _left_at(self, pc: int) -> None:
        if not self._counter.state.fresh:
            self._counter.left_at(pc)

    def _register(self, name: str) -> int:
        return int(self._engine.reg_read(self._ids[name]))
