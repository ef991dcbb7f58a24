"""Messages of one word from one core to another, with an interrupt to the receiver."""

from __future__ import annotations

import functools
from collections import deque

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap


class Mailbox(Peripheral):
    """A queue of words with an interrupt: any core sends, the core with the line receives.

    A word can be received ``latency`` cycles after it was sent and never before, also where the
    cores run in turns. A word that is sent to a full queue is lost and sets STATUS.OVERFLOW; the
    one in RECEIVE stays when the queue is empty.

    Args:
        depth: words that it holds, 1 to 255.
        latency: cycles from one core to the other, at least 1.
    """

    registers = RegisterMap(
        Register("SEND", 0x00, access="wo", on_write="send", doc="A write appends the word."),
        Register(
            "RECEIVE",
            0x04,
            access="ro",
            on_read="receive",
            doc="A read takes the oldest word; STATUS.COUNT says whether there is one.",
        ),
        Register(
            "STATUS",
            0x08,
            fields=[
                Field("COUNT", 0, 8, access="ro", doc="Words that can be received."),
                Field("FULL", 8, access="ro", doc="The next word would be lost."),
                Field("OVERFLOW", 9, access="w1c", doc="A word was lost."),
            ],
            doc="State of the queue.",
        ),
        Register(
            "INTERRUPT",
            0x0C,
            fields=[Field("ENABLE", 0, doc="The line is up while STATUS.COUNT is not 0.")],
            on_write="update",
            doc="The interrupt line.",
        ),
    )
    size = 0x10

    def __init__(self, depth: int = 8, latency: int = 4) -> None:
        if not (0 < depth < 256 and latency > 0):
            raise ValueError(f"depth {depth} must be 1 to 255, latency {latency} at least 1")
        self.depth, self.latency = depth, latency
        self._queue: deque[int] = deque()
        self._under_way = self._era = 0
        super().__init__()

    def reset(self) -> None:
        """Drop all messages."""
        super().reset()
        self._queue.clear()
        self._under_way = 0
        self._era += 1
        self.update()

    def send(self, value: int) -> None:
        """A core wrote SEND."""
        if len(self._queue) + self._under_way == self.depth:
            self.set("STATUS", "OVERFLOW", 1)
            return
        self._under_way += 1
        arrive = functools.partial(self._arrive, value, self._era)
        self.clock.at(self.clock.now + self.latency, arrive)
        self.update()

    def _arrive(self, value: int, era: int) -> None:
        if era == self._era:  # there was no reset since
            self._under_way -= 1
            self._queue.append(value)
            self.update()

    def receive(self) -> None:
        """A core reads RECEIVE."""
        if self._queue:
            self.values["RECEIVE"] = self._queue.popleft()
            self.update()

    def update(self, _: int = 0) -> None:
        """Let STATUS and the line say what is in the queue."""
        self.set("STATUS", "COUNT", len(self._queue))
        self.set("STATUS", "FULL", int(len(self._queue) + self._under_way == self.depth))
        level = bool(self._queue) and bool(self.get("INTERRUPT", "ENABLE"))
        if level != self.interrupt.level:  # a line that stays up is no new request
            self.interrupt.set(level)
