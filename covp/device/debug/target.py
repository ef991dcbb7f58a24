"""`DebugTarget`: run control of a virtual device, as debug hardware has it over a real core."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from covp.base.closing import Owned
from covp.device.debug.core_registers import CoreRegisters
from covp.device.machine.watchpoints import Watch, WatchHit
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, DeviceFault, ProgramExit

_VTOR = 0xE000ED08
_RETRY = 0.001  # seconds between two requests to a running core


class HaltReason(Enum):
    """The reason of a halt."""

    REQUEST = "request"
    BREAKPOINT = "breakpoint"
    WATCHPOINT = "watchpoint"
    STEP = "step"
    FAULT = "fault"
    RESET = "reset"
    EBREAK = "ebreak"
    EXIT = "exit"


class WatchedAccess(Enum):
    """The kind of accesses that a watchpoint stops."""

    READ = "read"
    WRITE = "write"
    ANY = "any"


class DebugTarget(Owned):
    """Run control of a `VirtualDevice`, for several debuggers at once.

    The core runs in a thread of its own. Accesses from other threads halt it for a
    moment. It is halted when this is made, as after a reset.

    A fault halts the core before the faulting instruction (kind FAULT), and so does BKPT or
    EBREAK (kind EBREAK); a watchpoint halts it before the access. A program that ends itself by
    semihosting halts at that call (kind EXIT).

    Attributes:
        device: the core.
        reason: of the last halt.
        fault: of the program, with reason FAULT.
        exit: how the program ended, with reason EXIT.
        watch_hit: the access, with reason WATCHPOINT.
        on_halt: called from the core's thread after each halt of a running core.
    """

    def __init__(self, device: VirtualDevice) -> None:
        self.device = device
        self.architecture = device.platform.core.architecture
        self.reason = HaltReason.RESET
        self.fault: DeviceFault | None = None
        self.exit: ProgramExit | None = None
        self.watch_hit: WatchHit | None = None
        self.on_halt: Callable[[], None] | None = None
        self._registers = CoreRegisters(device)
        self._breakpoints: Counter[int] = Counter()
        self._watchpoints: Counter[tuple[int, int, WatchedAccess]] = Counter()
        self._core = threading.Lock()  # held while the emulator is used
        self._waiting = 0
        self._changed = threading.Condition()
        self._running = self._closing = self._halting = False
        self._resumed = self._watch_first = False
        self.reset(halt=True)
        self._thread = threading.Thread(target=self._serve, name="covp-core", daemon=True)
        self._thread.start()

    @property
    def label(self) -> str:
        """The debugged core's name, for messages."""
        return f"the debugged core of {self.device.platform.name}"

    def close(self) -> None:
        """Halt the core and end its thread; the device stays open."""
        self.halt()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    # -- running ------------------------------------------------------------------------------

    @property
    def is_halted(self) -> bool:
        """True if the core is halted."""
        return not self._running

    def halt(self) -> None:
        """Halt the core; no effect on one that is halted."""
        if self._running:
            self._halting = True
            while not self.wait(_RETRY):
                self.device.request_halt()

    def resume(self, watch: bool = False, over: bool = True) -> None:
        """Run the core from its pc.

        ``watch``: a watched access of the first instruction counts.
        ``over``: a breakpoint at the pc does not count; it does for a core's own comparators.
        """
        with self._changed:
            if self._closing:
                raise DeviceError("the debug target is closed")
            if self._running:
                return
            self._halting = False
            self._resumed, self._watch_first = over, watch
            self._running = True
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait for a halt and return whether the core halted within ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)

    def step(self, watch: bool = False) -> None:
        """Execute one instruction of a halted core; breakpoints do not count.

        ``watch``: a watched access counts, and the core stays before it.
        """
        self._check_halted("step")
        with self._still():
            try:
                self.device.step(watch)
                hit = self.device.core.watchpoints.hit is not None
                self._note(HaltReason.WATCHPOINT if hit else HaltReason.STEP)
            except (DeviceFault, ProgramExit) as end:
                self._note_end(end)

    def reset(self, halt: bool) -> None:
        """Reset core and peripherals; memory is kept. ``halt``: stay before the first
        instruction, else run on.

        sp and pc come from the vector table where the flash starts (Arm DDI0403E B1.5.5), or the
        pc is the start of the flash (RISC-V).
        """
        self.halt()
        with self._still():
            self.device.reset()
            flash = self.device.platform.flash
            if self.architecture == "arm":
                sp, pc = self._vectors(flash.start)
                self._registers.write("sp", sp)
                self._registers.write("pc", pc)
            else:
                self._registers.write("pc", flash.start)
            self._note(HaltReason.RESET)
        if not halt:
            self.resume()

    def _vectors(self, table: int) -> tuple[int, int]:
        content = self.device.read(table, 8)
        sp, pc = (int.from_bytes(content[at : at + 4], "little") for at in (0, 4))
        inside = self.device.board.bus.is_memory(pc & ~1, 2) and sp % 4 == 0
        if not inside or not self.device.board.bus.is_memory(sp - 4, 4):  # erased: nothing to start
            return self._registers.read("sp"), table
        return sp, pc & ~1

    # -- registers and memory -----------------------------------------------------------------

    def read_register(self, name: str) -> int:
        """Return a register by name; see `CoreRegisters`. Raises DeviceError: no such register."""
        with self._still():
            return self._registers.read(name)

    def write_register(self, name: str, value: int) -> None:
        """Change a register of a halted core. Raises DeviceError."""
        with self._still():
            self._registers.write(name, value)

    @property
    def register_names(self) -> tuple[str, ...]:
        """The names that `read_register` knows."""
        return self._registers.names

    def read_memory(self, address: int, size: int) -> bytes:
        """Read memory, or a peripheral's registers by words. Raises DeviceError: nothing there."""
        with self._still():
            return self._access(lambda: self.device.board.read_bus(address, size))

    def write_memory(self, address: int, data: bytes) -> None:
        """Store bytes: in RAM, flash or a peripheral's registers. Raises DeviceError."""
        with self._still():
            self._access(lambda: self.device.board.write_bus(address, data))

    @staticmethod
    def _access(work: Callable[[], bytes | None]) -> bytes:
        try:
            return work() or b""
        except DeviceFault as fault:  # the debugger's doing, not the program's
            raise DeviceError(str(fault)) from None

    # -- breakpoints --------------------------------------------------------------------------

    def set_breakpoint(self, address: int) -> None:
        """Halt before the instruction; set twice it has to be cleared twice."""
        with self._still():
            self._breakpoints[address & ~1] += 1
            self.device.set_breakpoints(+self._breakpoints)

    def clear_breakpoint(self, address: int) -> None:
        """Take a breakpoint away; no effect where there is none."""
        with self._still():
            self._breakpoints[address & ~1] -= 1
            self._breakpoints = +self._breakpoints
            self.device.set_breakpoints(self._breakpoints)

    def set_watchpoint(self, address: int, size: int, access: WatchedAccess) -> None:
        """Halt before the core's accesses to memory (not of peripherals' registers)."""
        with self._still():
            self._watchpoints[address, size, access] += 1
            self._arm_watchpoints()

    def clear_watchpoint(self, address: int, size: int, access: WatchedAccess) -> None:
        """Take a watchpoint away; no effect where there is none."""
        with self._still():
            self._watchpoints[address, size, access] -= 1
            self._watchpoints = +self._watchpoints
            self._arm_watchpoints()

    def _arm_watchpoints(self) -> None:
        self.device.set_watchpoints(
            Watch(
                address, size, access is not WatchedAccess.WRITE, access is not WatchedAccess.READ
            )
            for address, size, access in self._watchpoints
        )

    # -- the core's thread --------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._running or self._closing)
                if self._closing:
                    return
            while not self._runs_out():
                while self._waiting:  # other threads use the core now
                    time.sleep(_RETRY / 10)

    def _runs_out(self) -> bool:
        """Run the core until it halts (True) or another thread needs it (False)."""
        with self._core:
            if not self._halting:
                resumed, self._resumed = self._resumed, False
                try:
                    if not self.device.run(resumed, self._watch_first) and not self._halting:
                        return False
                    self._note(self._why())
                except (DeviceFault, ProgramExit) as end:
                    self._note_end(end)
                except BaseException as error:  # a peripheral's own error must not be lost
                    pc = self._registers.read("pc")
                    self._note_end(DeviceFault("peripheral error", pc=pc, detail=str(error)))
            else:
                self._note(HaltReason.REQUEST)
            with self._changed:
                self._running = False
                self._changed.notify_all()
        if self.on_halt is not None:
            self.on_halt()
        return True

    def _why(self) -> HaltReason:
        if self.device.core.watchpoints.hit is not None:
            return HaltReason.WATCHPOINT
        if self._registers.read("pc") & ~1 in self._breakpoints:
            return HaltReason.BREAKPOINT
        return HaltReason.REQUEST

    def _note(self, reason: HaltReason) -> None:
        self.reason, self.fault, self.exit = reason, None, None
        is_watched = reason is HaltReason.WATCHPOINT
        self.watch_hit = self.device.core.watchpoints.hit if is_watched else None

    def _note_end(self, end: DeviceFault | ProgramExit) -> None:
        if isinstance(end, ProgramExit):
            self._note(HaltReason.EXIT)
            self.exit = end
        elif end.kind == "breakpoint":
            self._note(HaltReason.EBREAK)
        else:
            self._note(HaltReason.FAULT)
            self.fault = end
        self._registers.write("pc", end.pc or 0)

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Halt the core within the block."""
        self._waiting += 1
        try:
            while not self._core.acquire(timeout=_RETRY):
                self.device.request_halt()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._core.release()

    def _check_halted(self, what: str) -> None:
        if self._running:
            raise DeviceError(f"{what}: the core is running; halt it first")
