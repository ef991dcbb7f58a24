"""A DMA controller: moves memory, and registers of peripherals at the pace of their requests."""

from __future__ import annotations

from dataclasses import dataclass

from covp.hardware.clock import Event
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

CHANNELS = 4
_STRIDE = 0x20


def _channel(number: int) -> list[Register]:
    base, name = number * _STRIDE, f"CH{number}"
    return [
        Register(f"{name}_SOURCE", base, doc="Address of the first element."),
        Register(f"{name}_TARGET", base + 0x04, doc="Where it goes."),
        Register(
            f"{name}_COUNT",
            base + 0x08,
            fields=[Field("ELEMENTS", 0, 20)],
            doc="Elements to move, above 0.",
        ),
        Register(
            f"{name}_CONFIG",
            base + 0x0C,
            fields=[
                Field("ENABLE", 0, doc="1 starts, 0 stops; 0 when all is moved."),
                Field("SIZE", 1, 2, doc="Of an element: 0, 1, 2 for 1, 2, 4 bytes."),
                Field("SOURCE_STEP", 3, doc="The source's address increases with each element."),
                Field("TARGET_STEP", 4, doc="The target's address increases with each element."),
                Field("PACED", 5, doc="Elements are moved at requests of a peripheral."),
                Field("CIRCULAR", 6, doc="Begin anew when all is moved."),
                Field("REQUEST", 8, 5, doc="Number of the request signal."),
                Field("BURST", 16, 8, doc="Elements for each request, less 1."),
                Field("HALF_INTERRUPT", 24, doc="STATUS.HALF raises the line."),
                Field("DONE_INTERRUPT", 25, doc="STATUS.DONE raises the line."),
            ],
            on_write="configure",
            doc="How it moves them.",
        ),
        Register(f"{name}_LEFT", base + 0x10, access="ro", doc="Elements that are left to move."),
    ]


@dataclass
class _Transfer:
    """What an enabled channel is doing.

    Attributes:
        moved: elements, since the start or the latest wrap.
        event: the next step of a transfer that is not paced.
    """

    moved: int = 0
    event: Event | None = None


class DmaController(Peripheral):
    """Four channels; memory to memory or paced, with an interrupt at half and at the end.

    A transfer from memory to memory takes ``cycles`` for each element; its first half is in memory
    at half of the time. A paced one moves a burst with each request, in the same cycle. Accesses
    outside memory and peripherals are faults.

    Args:
        cycles: of an element that is not paced: one load and one store.
    """

    registers = RegisterMap(
        *(register for number in range(CHANNELS) for register in _channel(number)),
        Register(
            "STATUS",
            CHANNELS * _STRIDE,
            fields=[
                Field("HALF", 0, CHANNELS, access="w1c", doc="By channel: half is moved."),
                Field("DONE", 8, CHANNELS, access="w1c", doc="By channel: all is moved."),
            ],
            on_write="update",
            doc="What has happened.",
        ),
    )
    size = CHANNELS * _STRIDE + 4

    def __init__(self, cycles: int = 2) -> None:
        if cycles < 1:
            raise ValueError(f"cycles {cycles} must be at least 1")
        self.cycles = cycles
        self._running: dict[int, _Transfer] = {}
        super().__init__()

    def reset(self) -> None:
        """All channels stop."""
        super().reset()
        for channel in list(self._running):
            self._stop(channel)
        self.update()

    # -- channels -----------------------------------------------------------------------------

    def _get(self, channel: int, field: str) -> int:
        return self.get(f"CH{channel}_CONFIG", field)

    def _count(self, channel: int) -> int:
        return self.get(f"CH{channel}_COUNT", "ELEMENTS")

    def configure(self, _: int = 0) -> None:
        """A CONFIG register was written: start and stop what has changed."""
        for channel in range(CHANNELS):
            if not self._get(channel, "ENABLE"):
                self._stop(channel)
            elif channel not in self._running:
                self._start(channel)
        self.update()

    def _start(self, channel: int) -> None:
        count = self._count(channel)
        if not count or self._get(channel, "SIZE") > 2:
            raise self.fault(f"channel {channel} starts with no elements, or of unknown size")
        self._running[channel] = _Transfer()
        self.values[f"CH{channel}_LEFT"] = count
        if not self._get(channel, "PACED"):
            self._plan(channel, self.clock.now)

    def _stop(self, channel: int) -> None:
        transfer = self._running.pop(channel, None)
        if transfer is not None and transfer.event is not None:
            transfer.event.cancel()

    def _plan(self, channel: int, cycle: int) -> None:
        """Move the next half of a transfer that is not paced, when its time has come."""
        transfer, count = self._running[channel], self._count(channel)
        half = count // 2
        elements = half if transfer.moved < half else count - transfer.moved
        due = cycle + elements * self.cycles
        transfer.event = self.clock.at(due, lambda: self._step(channel, elements, due))

    def _step(self, channel: int, elements: int, cycle: int) -> None:
        self._move(channel, elements)
        if channel in self._running:
            self._plan(channel, cycle)

    def on_request(self, number: int) -> None:
        """A peripheral pulses a request signal."""
        for channel in list(self._running):
            if self._get(channel, "PACED") and self._get(channel, "REQUEST") == number:
                self._move(channel, self._get(channel, "BURST") + 1)

    # -- elements -----------------------------------------------------------------------------

    def _move(self, channel: int, elements: int) -> None:
        """Move some elements, or those that are left."""
        transfer, count = self._running[channel], self._count(channel)
        elements = min(elements, count - transfer.moved)
        self._copy(channel, transfer.moved, elements)
        before = transfer.moved
        transfer.moved += elements
        if before < count // 2 <= transfer.moved:
            self._note(channel, "HALF")
        if transfer.moved == count:
            self._note(channel, "DONE")
            transfer.moved = 0
            if not self._get(channel, "CIRCULAR"):
                self._stop(channel)
                self.set(f"CH{channel}_CONFIG", "ENABLE", 0)
        running = channel in self._running
        self.values[f"CH{channel}_LEFT"] = count - transfer.moved if running else 0
        self.update()

    def _copy(self, channel: int, first: int, elements: int) -> None:
        size = 1 << self._get(channel, "SIZE")
        source, target = (self.values[f"CH{channel}_{end}"] for end in ("SOURCE", "TARGET"))
        source_step = size * self._get(channel, "SOURCE_STEP")
        target_step = size * self._get(channel, "TARGET_STEP")
        for element in range(first, first + elements):
            value = self.bus.load(source + element * source_step, size)
            self.bus.store(target + element * target_step, size, value)

    def _note(self, channel: int, field: str) -> None:
        self.set("STATUS", field, self.get("STATUS", field) | 1 << channel)

    def update(self, _: int = 0) -> None:
        """The line is up while something that a channel wants to report has happened."""
        enabled = {
            field: sum(self._get(n, f"{field}_INTERRUPT") << n for n in range(CHANNELS))
            for field in ("HALF", "DONE")
        }
        level = any(self.get("STATUS", name) & bits for name, bits in enabled.items())
        if level != self.interrupt.level:  # a line that stays up is no new request
            self.interrupt.set(level)
