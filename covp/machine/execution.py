"""`Execution`: lets the emulated core run, and does what the emulator leaves to its host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc, UcError

from covp.errors import DeviceFault
from covp.hardware.clock import Clock
from covp.hardware.interrupt import InterruptController
from covp.machine.counter import NOWHERE, Counter
from covp.machine.custom_instructions import CustomInstructions
from covp.machine.engine import RISCV_NAMES, register_ids
from covp.machine.faults import Ending, explain
from covp.machine.instructions import (
    RiscvCounters,
    is_plain_store,
    is_wait_for_interrupt,
    may_unmask,
)
from covp.machine.mmio import PeripheralBus
from covp.machine.nvic import Nvic
from covp.machine.watchpoints import Watchpoints
from covp.platform_file import Platform

# Instructions between two looks at the time limit and at Ctrl-C: well under a tenth of a second.
SLICE = 20_000_000
_ACCESS_ERRORS = (
    uc.UC_ERR_READ_UNMAPPED,
    uc.UC_ERR_WRITE_UNMAPPED,
    uc.UC_ERR_FETCH_UNMAPPED,
    uc.UC_ERR_WRITE_PROT,
    uc.UC_ERR_READ_PROT,
    uc.UC_ERR_FETCH_PROT,
)
_ARM_HINTS = (0xBF10, 0xBF20)  # yield, wfe: the emulator stops behind them


class Execution:
    """One core's emulator, counter and peripherals, run together.

    Attributes:
        running: an instruction is being carried out.
        at_breakpoint: the latest `run` ended in front of a breakpoint or watched access.
    """

    def __init__(
        self,
        platform: Platform,
        engine: Uc,
        counter: Counter,
        peripherals: PeripheralBus,
        watchpoints: Watchpoints,
        csrs: RiscvCounters,
        clock: Clock,
        interrupts: InterruptController,
        custom: CustomInstructions,
    ) -> None:
        self.running = False
        self.at_breakpoint = False
        self._platform = platform
        self._engine, self._counter = engine, counter
        self._peripherals, self._watchpoints, self._csrs = peripherals, watchpoints, csrs
        self._clock, self._interrupts, self._custom = clock, interrupts, custom
        self._nvic = interrupts if isinstance(interrupts, Nvic) else None
        self._ids = register_ids(platform.core.architecture)
        self._is_arm = platform.core.architecture == "arm"
        self._thumb = 1 if self._is_arm else 0
        self._wfi_bytes = 2 if self._is_arm else 4

    def forget_code(self, address: int, size: int) -> None:
        """The bytes changed, or translated code has to end in front of them."""
        if size:
            self._engine.ctl_remove_cache(address, address + size)

    def run(
        self, pc: int, stop: int, last: int | None, masked: bool = False, allowed: int = NOWHERE
    ) -> int:
        """Run until ``stop``, for a slice of time, or until something needs attention.

        Args:
            pc, stop: even addresses.
            last: do not pass this total of instructions; None: no limit.
            masked: no interrupt comes first, and time brings none.
            allowed: a special instruction there is left to the emulator.

        Returns:
            the pc to go on from.

        Raises:
            DeviceFault, and whatever a peripheral raised: what ended the program.
        """
        counter, state = self._counter, self._counter.state
        self.at_breakpoint = False
        if not masked:
            pc = self._let_in(pc)
            if pc == stop:
                return pc
        ceiling = state.instructions + SLICE
        ceiling = ceiling if last is None else min(ceiling, last)
        counter.begin(ceiling, None if masked else self._clock.next_event, allowed)
        status = self._start(pc, stop)
        pc = self._register("pc") & ~self._thumb
        if state.pending:
            counter.settle(pc)
        error = self._peripherals.take_pending()
        if error is not None:
            self._left_at(pc)
            if isinstance(error, DeviceFault):
                error.pc = pc if error.pc is None else error.pc
            raise error
        if self._peripherals.take_stored():
            return self._behind_store(pc)
        if self._watchpoints.stopped_at(pc):
            self._left_at(pc)
            self.at_breakpoint = True
            return pc
        if self._peripherals.locating:
            return self._split_at_access(pc)
        if status == uc.UC_ERR_INSN_INVALID and counter.opcode(pc - 2) in _ARM_HINTS:
            self._left_at(pc)
            return pc
        if self._nvic is not None and self._nvic.is_return(pc):
            self._left_at(pc)
            return self._timed(self._nvic.leave, pc)
        if state.interrupt and self._custom.meet(pc - 4, state.interrupt - 1):
            self._left_at(pc - 4)
            return pc - 4
        if status or state.interrupt:
            raise self._fault(pc, status)
        if state.special:
            return self._attend(pc, last, masked)
        if not state.stopped:
            slept = pc - self._wfi_bytes
            is_wfi = is_wait_for_interrupt(self._platform.core, counter.opcode(slept))
            is_wfi = is_wfi and counter.ran_last(slept)
            if pc != stop:
                self._left_at(pc)
            if is_wfi:
                self._sleep(slept)
        return pc

    def _let_in(self, pc: int) -> int:
        """Let happen what is due, and enter the interrupt that is pending, if any."""
        self._clock.run_due()
        return self._timed(self._interrupts.take, pc)

    def _timed(self, work: Callable[[int], int], pc: int) -> int:
        """Exception entry or return: its cycles pass, no instruction retires."""
        before = self._nvic.cycles_spent if self._nvic is not None else 0
        pc = work(pc)
        if self._nvic is not None:
            self._counter.state.cycles += self._nvic.cycles_spent - before
        return pc

    def _sleep(self, pc: int) -> None:
        """WFI: time is skipped ahead to what wakes the core."""
        self._clock.run_due()
        while not self._interrupts.wakes():
            due = self._clock.next_event
            if due is None:
                raise DeviceFault(
                    "endless sleep",
                    pc=pc,
                    detail="WFI: no enabled interrupt is pending and no peripheral is at work",
                )
            self._clock.wait_until(due)
            self._clock.run_due()

    def step(self, pc: int) -> int:
        """Carry out the one instruction at ``pc``, interrupts masked; returns the next pc."""
        before = self._counter.state.instructions
        behind = pc + (2 if self._is_short(pc) else 4)
        while True:
            self.forget_code(pc, 6)
            after = self.run(pc, behind, before + 1, masked=True)
            if self._counter.state.instructions > before or after != pc or self.at_breakpoint:
                self.forget_code(pc, 6)
                return after

    def _is_short(self, pc: int) -> bool:
        bits = self._counter.opcode(pc)
        return bits <= 0xFFFF if self._is_arm else bits & 3 != 3

    def _start(self, pc: int, stop: int) -> int:
        self.running = True
        try:
            self._engine.emu_start(pc | self._thumb, stop)
        except UcError as error:
            return int(error.errno)
        finally:
            self.running = False
        return 0

    def _attend(self, pc: int, last: int | None, masked: bool) -> int:
        """The emulator stopped in front of a block that holds an instruction out of the common."""
        state = self._counter.state
        if state.special_pc != pc:
            self.forget_code(state.special_pc, 2)  # code translated from now on ends in front of it
            return self.run(pc, state.special_pc, last, masked)
        if state.misaligned:
            raise self._misaligned(pc)
        if state.breakpoint:
            self.at_breakpoint = True
            return pc
        return self._special(pc)

    def _special(self, pc: int) -> int:
        """Carry out the instruction at ``pc`` that the emulator must not; returns the next pc."""
        bits = self._counter.opcode(pc)
        size = 2 if self._is_short(pc) else 4
        if may_unmask(self._platform.core, size, bits):
            self.forget_code(pc, 6)
            return self.run(pc, pc + size, self._counter.state.instructions + 1, True, pc)
        if not self._is_arm and RiscvCounters.takes(bits):
            rs1, rd = bits >> 15 & 31, bits >> 7 & 31
            value = self._csrs.access(bits, self._register(RISCV_NAMES[rs1]))
            if value is not None:
                if rd:
                    self._engine.reg_write(self._ids[RISCV_NAMES[rd]], value)
                self._counter.count_one(pc, 4)
                return pc + 4
        detail = f"opcode 0x{bits:x}: {self._platform.core.name} does not have it"
        raise DeviceFault("illegal instruction", pc=pc, detail=detail)

    def _misaligned(self, pc: int) -> DeviceFault:
        state = self._counter.state
        return DeviceFault(
            "misaligned access",
            pc=pc,
            address=state.access_address,
            size=state.access_size,
            detail=f"a {self._platform.core.name} needs a multiple of {state.access_size} here",
        )

    def _split_at_access(self, pc: int) -> int:
        """Let blocks end in front of the peripheral's access at ``pc`` from now on."""
        block = self._counter.block()
        self._left_at(pc)
        self._peripherals.located(pc)
        if block != pc:
            self.forget_code(pc, 2)
            self._engine.ctl_exits_enabled(True)
            self._engine.ctl_set_exits([pc])
            self._engine.ctl_request_cache(block | self._thumb)
            self._engine.ctl_exits_enabled(False)
        return pc

    def _behind_store(self, pc: int) -> int:
        """The emulator stopped at a store that is done, because an interrupt comes next."""
        behind = pc + (2 if self._is_short(pc) else 4)
        self._left_at(behind)
        return behind

    def interrupted_by_store(self) -> bool:
        """Whether the store that a peripheral has just got lets an interrupt in at once.

        Where the store also changes its base register it has to be finished first, so that the
        interrupt waits for the end of the block.
        """
        if not self._interrupts.preempts():
            return False
        pc = self._counter.block()
        return is_plain_store(self._platform.core, self._counter.opcode(pc))

    def _left_at(self, pc: int) -> None:
        if not self._counter.state.fresh:
            self._counter.left_at(pc)

    def _fault(self, pc: int, status: int) -> DeviceFault:
        if status in _ACCESS_ERRORS:
            self._left_at(pc)
            self._repeat_access(pc)
        ending = Ending(pc, self._register("sp"), status)
        fault = explain(self._platform, self._counter, ending)
        self._left_at(pc if fault.pc is None else fault.pc)
        return fault

    def _repeat_access(self, pc: int) -> None:
        """Let the instruction at ``pc`` fail once more, to learn its address and size."""
        counter = self._counter
        with counter.watching_accesses():
            self._engine.ctl_flush_tb()
            counter.begin(1 << 63)
            with contextlib.suppress(UcError):
                self._engine.emu_start(pc | self._thumb, 1 << 32, count=1)
        self._engine.ctl_flush_tb()

    def _register(self, name: str) -> int:
        return int(self._engine.reg_read(self._ids[name]))
