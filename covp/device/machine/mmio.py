"""`MmioPort`: the loads and stores of one emulated core that go to peripherals."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc

from covp.chip.cores import Core
from covp.chip.platform_file import Region
from covp.device.machine.counter import Counter
from covp.device.machine.instructions import accesses_conditionally, is_plain_store
from covp.device.machine.run_control import RunControl
from covp.errors import AcceleratorError, CovpError, DeviceFault
from covp.hardware.bus import Bus
from covp.hardware.clock import Clock
from covp.hardware.flash_controller import FlashController
from covp.hardware.interrupt import InterruptController
from covp.hardware.observer import RegisterAccess
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_map import PAGE, PeripheralMap, nothing_at, pages

_ACCESSES_PER_CHECK = 4096
_ENDLESS = 1 << 19
"""Reads of one register in a row, all alike and with no event to come, that nothing will end."""
_STORE_WINDOW = 1 << 32  # no address of the core
_POLLING = 64
"""The number of such reads from which a program counts as polling."""


@dataclass(frozen=True)
class MmioState:
    """The content of an `MmioPort.save_state`."""

    last_access: tuple[int, int]
    polled: tuple[Peripheral, int, int] | None
    polls: int


class MmioPort:
    """A port that maps peripherals into the emulator and passes the core's accesses to them.

    Args:
        core, engine, counter, interrupts: of the core.
        maps: the shared peripherals and the core's own; they do not overlap.
        clock: of the board.
        control: what ends the run.
        bus: of the core: its observers are notified of accesses.

    Attributes:
        pending: the error that a model raised in the latest access, for which the run is stopped.
        locating: the latest access was given up to learn its exact time; see `_is_located`.
    """

    def __init__(
        self,
        core: Core,
        engine: Uc,
        counter: Counter,
        interrupts: InterruptController,
        maps: tuple[PeripheralMap, PeripheralMap],
        clock: Clock,
        control: RunControl,
        bus: Bus,
    ) -> None:
        self.pending: BaseException | None = None
        self.locating = False
        self._master, self._observers = bus.master, bus.observers
        self._core, self._engine, self._counter = core, engine, counter
        self._interrupts, self._maps = interrupts, maps
        self._clock, self._control = clock, control
        self._pages: dict[int, list[tuple[int, Peripheral]]] = {}
        self._access_points: set[int] = set()
        self._conditional: dict[int, bool] = {}
        self._stored = False
        self._last_access = (0, 0)
        self._accesses = 0
        self._polled: tuple[Peripheral, int, int] | None = None
        self._polls = 0

    # -- what is mapped -----------------------------------------------------------------------

    def update(self, base: int, size: int) -> None:
        """Receive accesses to the pages that hold peripherals, after one came or went."""
        for page in pages(base, size):
            was_mapped = page in self._pages
            self._pages[page] = [item for map in self._maps for item in map.on_page(page)]
            if not self._pages[page]:
                del self._pages[page]
                self._engine.mem_unmap(page, PAGE)
            elif not was_mapped:
                self._engine.mmio_map(page, PAGE, self._on_load, page, self._on_store, page)

    def control_flash(self, region: Region, controller: FlashController | None) -> None:
        """Pass the core's stores to a flash to its controller; None: they are faults again."""
        state = self._counter.state
        if state.flash_bytes:
            self._engine.mem_unmap(_STORE_WINDOW, state.flash_bytes)
        state.flash_start, state.flash_bytes = region.start, region.bytes if controller else 0
        state.store_window = _STORE_WINDOW
        if controller is not None:
            self._engine.mmio_map(
                _STORE_WINDOW, region.bytes, None, None, self._on_flash_store, (region, controller)
            )
        self._engine.ctl(uc.UC_CTL_TLB_FLUSH, uc.UC_CTL_IO_WRITE)

    def read(self, address: int, size: int) -> int:
        """Return a debugger's load. Raises DeviceFault where a load of the core would."""
        base, peripheral = self._find(address, size, is_store=False)
        return peripheral.read_register(address - base, size)

    def write(self, address: int, size: int, value: int) -> None:
        """Store as a debugger. Raises DeviceFault where a store of the core would."""
        base, peripheral = self._find(address, size, is_store=True)
        peripheral.write_register(address - base, size, value)

    def _find(self, address: int, size: int, is_store: bool) -> tuple[int, Peripheral]:
        for base, peripheral in self._pages.get(address & -PAGE, ()):
            if base <= address < base + peripheral.size:
                return base, peripheral
        raise nothing_at(is_store, address, size)

    # -- the emulator's callbacks -------------------------------------------------------------

    def _on_load(self, engine: Uc, offset: int, size: int, page: int) -> int:
        if self._counter.state.given_up:
            return 0  # the emulator goes on in an IT block, the core does not
        try:
            base, peripheral = self._find(page + offset, size, is_store=False)
            offset += page - base
            if peripheral.needs_exact_time(offset, False) and not self._is_located():
                return 0
            start = self._clock.now if self._observers else 0
            value = peripheral.read_register(offset, size)
            for observer in self._observers:
                observer.accessed(
                    RegisterAccess(self._master, start, peripheral, offset, size, value, False)
                )
            self._check_deadline()
            self._count_poll(peripheral, offset, value)
            return value
        except BaseException as error:
            self._fail(error, page + offset)
            return 0

    def _on_store(self, engine: Uc, offset: int, size: int, value: int, page: int) -> None:
        if self._counter.state.given_up:
            return
        try:
            base, peripheral = self._find(page + offset, size, is_store=True)
            offset += page - base
            if peripheral.needs_exact_time(offset, True) and not self._is_located():
                return
            start, value = self._clock.now if self._observers else 0, value & 0xFFFFFFFF
            peripheral.write_register(offset, size, value)
            for observer in self._observers:
                observer.accessed(
                    RegisterAccess(self._master, start, peripheral, offset, size, value, True)
                )
            self._polls = 0
            self._check_deadline()
            if self._interrupts_now():
                self._stored = True
                self._engine.emu_stop()
        except BaseException as error:
            self._fail(error, page + offset)

    def _on_flash_store(
        self,
        engine: Uc,
        offset: int,
        size: int,
        value: int,
        flash: tuple[Region, FlashController],
    ) -> None:
        region, controller = flash
        if self._counter.state.given_up:
            return
        try:
            if not controller.is_programming:
                controller.refuse_store()
                raise DeviceFault(
                    "write to read-only memory",
                    address=region.start + offset,
                    size=size,
                    detail=region.name,
                )
            controller.store(region.start + offset, size, value)
            self._polls = 0
        except BaseException as error:
            self._fail(error, region.start + offset)

    def _interrupts_now(self) -> bool:
        """Return whether an interrupt has to come directly after the store just passed on.

        Where the store also changes its base register, or may be one inside an IT block, it has to
        be finished first, so that the interrupt waits for the end of the block.
        """
        block = self._counter.block()
        if not self._interrupts.preempts() or self._is_conditional(block):
            return False
        return is_plain_store(self._core, self._counter.opcode(block))

    def _is_located(self) -> bool:
        """Return whether the accessing instruction starts the block, so that the time is exact.

        Inside a block the emulator does not report the pc. Where it is needed the access is given
        up; the emulator then stops at the instruction, undone, and `Execution` repeats it as the
        start of a block of its own. Inside an IT block the emulator would stop at its end, with
        the access done: in blocks that have such accesses the time is the block's first cycle.
        """
        block = self._counter.block()
        execution = (block, self._counter.state.instructions)
        if block in self._access_points and execution != self._last_access:
            self._last_access = execution
            return True
        if self._is_conditional(block):
            return True
        self.locating = True
        self._counter.give_up_access()
        self._engine.emu_stop()
        return False

    def forget_code(self) -> None:
        """Forget blocks of code that may be from bytes of memory that have changed."""
        self._conditional.clear()

    def _is_conditional(self, block: int) -> bool:
        """Return whether the access may be one inside an IT block."""
        if self._core.architecture != "arm":
            return False
        known = self._conditional.get(block)
        if known is None:
            known = accesses_conditionally(self._counter.opcode, block)
            self._conditional[block] = known
        return known

    def _fail(self, error: BaseException, address: int) -> None:
        """Keep the error of a model until the emulator has returned."""
        if isinstance(error, DeviceFault) and error.kind == "register access":
            error.address = address
        elif isinstance(error, Exception) and not isinstance(error, CovpError):
            cause, error = (
                error,
                AcceleratorError(
                    f"peripheral {self._name_at(address)}: its model raised {error!r} at an access "
                    f"to 0x{address:08x} ({_source(error)})"
                ),
            )
            error.__cause__ = cause
        if self.pending is None:
            self.pending = error
        self._counter.give_up_access()
        self._engine.emu_stop()

    def _name_at(self, address: int) -> str:
        try:
            return self._find(address, 1, is_store=False)[1].name
        except DeviceFault:
            return "?"

    def _check_deadline(self) -> None:
        """Stop a polling loop at the time limit; check once per several thousand accesses."""
        self._accesses += 1
        if self._accesses % _ACCESSES_PER_CHECK == 0 and self._control.is_over():
            self._counter.request_stop()

    # -- after a run --------------------------------------------------------------------------

    @property
    def has_stopped(self) -> bool:
        """True if an access has ended the run: there is something to take, or to locate."""
        return self._stored or self.locating or self.pending is not None

    def take_error(self) -> BaseException | None:
        """Return the error that a model raised, once."""
        error, self.pending = self.pending, None
        return error

    def take_store_stop(self) -> bool:
        """Return, once, whether the run was stopped at a store that is done."""
        stored, self._stored = self._stored, False
        return stored

    def mark_block_start(self, pc: int) -> None:
        """Start blocks at ``pc`` from now on, where the access is that was given up."""
        self.locating = False
        self._access_points.add(pc)

    # -- polling ------------------------------------------------------------------------------

    @property
    def polled_register(self) -> str:
        """The register that the program reads again and again, as "peripheral.REGISTER", or ""."""
        if self._polled is None or self._polls < _POLLING:
            return ""
        peripheral, offset, _ = self._polled
        register = peripheral.registers.at(offset)
        return f"{peripheral.name}.{register.name if register else hex(offset)}"

    def forget_polls(self) -> None:
        """Forget polls: another core has run and may have changed the value that is polled."""
        self._polls = 0

    def _count_poll(self, peripheral: Peripheral, offset: int, value: int) -> None:
        """Count a poll. Raises DeviceFault: nothing will ever change the value."""
        polled = (peripheral, offset, value)
        self._polls = self._polls + 1 if polled == self._polled else 0
        self._polled = polled
        if self._polls < _ENDLESS or self._clock.is_open or self._clock.next_event is not None:
            return
        raise DeviceFault(
            "endless poll",
            detail=f"{self.polled_register} was read {self._polls:,} times, always 0x{value:x}, "
            "and nothing is under way that would change it",
        )

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> MmioState:
        """Return what the next access depends on; `pending` and `locating` never outlast a run."""
        return MmioState(self._last_access, self._polled, self._polls)

    def load_state(self, state: MmioState) -> None:
        """Go back to a saved state."""
        self._last_access = state.last_access
        self._polled, self._polls = state.polled, state.polls
        self.pending, self.locating, self._stored = None, False, False


def _source(error: BaseException) -> str:
    """Return the file and line that raised an error, for the author of the model."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
