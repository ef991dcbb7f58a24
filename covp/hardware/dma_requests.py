"""`DmaRequests`: the signals by which peripherals pace a DMA controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

LINES = 32


class RequestReceiver(Protocol):
    """A peripheral, as far as requests reach it."""

    def on_request(self, number: int) -> None:
        """Handle a pulse of the request signal ``number``."""
        ...


class DmaRequests:
    """Numbered request signals of a board, from any peripheral to all of them.

    A request is a pulse: one that no channel of a DMA controller waits for is lost.

    Args:
        receivers: returns the peripherals on the board.
    """

    def __init__(self, receivers: Callable[[], Iterable[RequestReceiver]] = tuple) -> None:
        self._receivers = receivers

    def pulse(self, number: int) -> None:
        """Request a transfer, as a peripheral has something to be moved.

        Args:
            number: of the signal, 0 to 31.
        """
        for receiver in self._receivers():
            receiver.on_request(number)
