"""`PeripheralBus`: the peripherals of an emulated core, and the emulator's callbacks for them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from unicorn.unicorn_py3.unicorn import Uc

from covp.errors import AcceleratorError, CovpError, DeviceFault, FaultKind, PlatformError
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock
from covp.hardware.interrupt import InterruptLine
from covp.hardware.peripheral import Peripheral
from covp.machine.counter import Counter

PAGE = 0x1000
_ACCESSES_BETWEEN_LOOKS = 4096
_ENDLESS = 1 << 19
"""Reads of one register in a row, all alike and with no event to come, that nothing will end."""
_POLLING = 64
"""Such reads from which a program is said to be polling."""


class PeripheralBus:
    """Maps peripherals into the emulator and hands the core's accesses to them.

    Attributes:
        peripherals: name to (base address, model).
        pending: what a model raised in the latest access; the run is being stopped because of it.
        locating: the latest access was given up to learn its exact time; see `_is_located`.
        deadline: `time.monotonic` at which a polling loop is stopped.
        interrupts_now: asked after each store whether an interrupt has to come in behind it.
    """

    def __init__(
        self, engine: Uc, counter: Counter, memories: Sequence[Memory], bus: Bus, clock: Clock
    ) -> None:
        self.peripherals: dict[str, tuple[int, Peripheral]] = {}
        self.pending: BaseException | None = None
        self.locating = False
        self.deadline = 0.0
        self.interrupts_now: Callable[[], bool] = lambda: False
        self._stored = False
        self._engine, self._counter = engine, counter
        self._memories, self._bus, self._clock = memories, bus, clock
        self._pages: dict[int, list[tuple[int, Peripheral]]] = {}
        self._access_points: set[int] = set()
        self._last_access = (0, 0)
        self._accesses = 0
        self._polled: tuple[Peripheral, int, int] | None = None
        self._polls = 0

    def attach(self, peripheral: Peripheral, base: int, name: str, line: InterruptLine) -> None:
        """Put a peripheral on the bus. Raises PlatformError: its addresses or name are taken."""
        end = base + peripheral.size
        if name in self.peripherals:
            raise PlatformError(f"peripheral {name}: the name is used twice")
        for other, (start, model) in self.peripherals.items():
            if base < start + model.size and start < end:
                raise PlatformError(f"peripheral {name} at 0x{base:08x} overlaps {other}")
        for memory in self._memories:
            if base < memory.region.end and memory.region.start < end:
                raise PlatformError(
                    f"peripheral {name} at 0x{base:08x} overlaps memory {memory.region.name}"
                )
        self.peripherals[name] = (base, peripheral)
        for page in range(base & -PAGE, end, PAGE):
            if page not in self._pages:
                self._pages[page] = []
                self._engine.mmio_map(page, PAGE, self._on_load, page, self._on_store, page)
            self._pages[page].append((base, peripheral))
        peripheral.interrupt = line
        peripheral.attach(name, self._bus.for_master(name), self._clock)

    def detach(self, name: str) -> None:
        """Take a peripheral off the bus."""
        base, peripheral = self.peripherals.pop(name)
        for page in range(base & -PAGE, base + peripheral.size, PAGE):
            self._pages[page].remove((base, peripheral))
            if not self._pages[page]:
                del self._pages[page]
                self._engine.mem_unmap(page, PAGE)

    def reset(self) -> None:
        """Put all peripherals into their reset state."""
        for _, peripheral in self.peripherals.values():
            peripheral.reset()

    def read(self, address: int, size: int) -> int:
        """What a debugger's access gets. Raises DeviceFault where a load of the core would."""
        base, peripheral = self._find(address, size, "unmapped read")
        return peripheral.read_register(address - base, size)

    def write(self, address: int, size: int, value: int) -> None:
        """A debugger's access. Raises DeviceFault where a store of the core would."""
        base, peripheral = self._find(address, size, "unmapped write")
        peripheral.write_register(address - base, size, value)

    def take_pending(self) -> BaseException | None:
        """What a model raised, once."""
        error, self.pending = self.pending, None
        return error

    def take_stored(self) -> bool:
        """Whether the run was stopped at a store that is done, once."""
        stored, self._stored = self._stored, False
        return stored

    def _on_load(self, engine: Uc, offset: int, size: int, page: int) -> int:
        try:
            base, peripheral = self._find(page + offset, size, "unmapped read")
            offset += page - base
            if peripheral.needs_exact_time(offset, False) and not self._is_located():
                return 0
            value = peripheral.read_register(offset, size)
            self._look()
            self._count_poll(peripheral, offset, value)
            return value
        except BaseException as error:
            self._fail(error, page + offset)
            return 0

    def _on_store(self, engine: Uc, offset: int, size: int, value: int, page: int) -> None:
        try:
            base, peripheral = self._find(page + offset, size, "unmapped write")
            offset += page - base
            if peripheral.needs_exact_time(offset, True) and not self._is_located():
                return
            peripheral.write_register(offset, size, value & 0xFFFFFFFF)
            self._polls = 0
            self._look()
            if self.interrupts_now():
                self._stored = True
                self._engine.emu_stop()
        except BaseException as error:
            self._fail(error, page + offset)

    @property
    def polling(self) -> str:
        """The register that the program reads again and again, as "peripheral.REGISTER", or ""."""
        if self._polled is None or self._polls < _POLLING:
            return ""
        peripheral, offset, _ = self._polled
        register = peripheral.registers.at(offset)
        return f"{peripheral.name}.{register.name if register else hex(offset)}"

    def _count_poll(self, peripheral: Peripheral, offset: int, value: int) -> None:
        """Raises DeviceFault: it will never read anything else."""
        polled = (peripheral, offset, value)
        self._polls = self._polls + 1 if polled == self._polled else 0
        self._polled = polled
        hopeless = self._polls >= _ENDLESS and self._clock.next_event is None
        # a debugger's run has no deadline, and somebody who may change things from outside
        if hopeless and self.deadline < float("inf"):
            raise DeviceFault(
                "endless poll",
                detail=f"{self.polling} was read {self._polls:,} times, always 0x{value:x}, and "
                "nothing is under way that would change it",
            )

    def _is_located(self) -> bool:
        """Whether the accessing instruction starts the running block, so that the time is exact.

        Inside a block the emulator does not tell the pc. Where it is needed the access is given
        up; the emulator then stops at the instruction, undone, and `Execution` repeats it as the
        start of a block of its own.
        """
        block = self._counter.block()
        execution = (block, self._counter.state.instructions)
        if block in self._access_points and execution != self._last_access:
            self._last_access = execution
            return True
        self.locating = True
        self._engine.emu_stop()
        return False

    def located(self, pc: int) -> None:
        """The access that was given up is at ``pc``; a block starts there from now on."""
        self.locating = False
        self._access_points.add(pc)

    def _find(self, address: int, size: int, kind: FaultKind) -> tuple[int, Peripheral]:
        for base, peripheral in self._pages.get(address & -PAGE, ()):
            if base <= address < base + peripheral.size:
                return base, peripheral
        raise DeviceFault(kind, address=address, size=size, detail="no peripheral there")

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
                    f" ({_place(error)})"
                ),
            )
            error.__cause__ = cause
        if self.pending is None:
            self.pending = error
        self._engine.emu_stop()

    def _look(self) -> None:
        """Every so many accesses: a polling loop must not outrun the time limit."""
        self._accesses += 1
        if self._accesses % _ACCESSES_BETWEEN_LOOKS == 0 and time.monotonic() > self.deadline:
            self._counter.request_stop()


def _place(error: BaseException) -> str:
    """File and line that raised, for the model's author."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
