"""`find_divergence`: find the first diverging instruction of two calls of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from covp.errors import CovpError
from covp.laboratory.inside import Span, copies, inside
from covp.laboratory.meter import Meter

_BACK = 500
"""Instructions in which the caller of a function without debug information is looked for."""


class _Here(BaseException):
    """Ends a call whose rest is not of interest."""


def find_divergence(meter: Meter, one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """Find the last instruction that two calls both execute: "function+0x12 (file.c:7)".

    With the function of known source that has called it, where it is not the kernel itself.

    It is searched for by halves: where they part more than once, one of those places is found. Of
    "instructions" they part by the next pc, of "cycles" by the time, too.

    Args:
        meter: of the kernel.
        one, other: arguments whose figures differ.

    Returns:
        "" where it cannot be told: not on a virtual device.
    """
    device = meter.kernel.session.device.abilities.emulator
    if device is None:
        return ""
    low, high = 0, min(_length(meter, one), _length(meter, other))
    if _after(meter, one, high) == _after(meter, other, high):
        return ""
    while high - low > 1:  # alike after low, not after high
        middle = (low + high) // 2
        if _after(meter, one, middle) == _after(meter, other, middle):
            low = middle
        else:
            high = middle
    path = _path(meter, one, low)
    places = [device.board.symbols.locate(pc) for pc in reversed(path)]
    symbol, source = places[0]
    if source:
        return f"{symbol} ({source})"
    known = next((f"{name} ({line})" for name, line in places if line), "")
    return f"{symbol}, called by {known}" if known else symbol or ""


def _path(meter: Meter, arguments: tuple[Any, ...], instructions: int) -> list[int]:
    """Return the pc after ``instructions`` of the kernel, and before it those of the last ones."""
    path: list[int] = []

    def body(span: Span) -> None:
        before = max(0, instructions - _BACK)
        path.append(span.forward(before))
        for _ in range(instructions - before):
            path.append(span.step(path[-1]))
        raise _Here

    _run(meter, arguments, body)
    return path


def _length(meter: Meter, arguments: tuple[Any, ...]) -> int:
    meter.prepare()
    meter.kernel(*copies(arguments))
    return meter.kernel.latest.instructions or 0


def _after(meter: Meter, arguments: tuple[Any, ...], instructions: int) -> tuple[int, int]:
    """Return the pc after ``instructions`` of the kernel, and the cycles if they are compared."""
    found = (0, 0)

    def body(span: Span) -> None:
        nonlocal found
        before = span.device.core.cycles
        pc = span.forward(instructions)
        found = (pc, span.device.core.cycles - before if meter.of == "cycles" else 0)
        raise _Here

    _run(meter, arguments, body)
    return found


def _run(meter: Meter, arguments: tuple[Any, ...], body: Callable[[Span], None]) -> None:
    meter.prepare()
    with suppress(_Here, CovpError), inside(meter.kernel, body):
        meter.kernel(*copies(arguments))
    meter.kernel.session.device.reset()  # it may have ended in the middle of an IT block
