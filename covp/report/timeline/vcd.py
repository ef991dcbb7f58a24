"""Register accesses, interrupt lines and busy units as a value change dump.

IEEE 1364-2005, clause 18: a header with the signals, then times with the values that changed. The
bus is one that makes an access in each cycle in which `ready` and one of `read` and `write` are 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple, TextIO

from covp.device.timeline import TimelineLog
from covp.report.timeline.files import written_whole
from covp.report.timeline.phases import phase_spans, windows
from covp.report.timeline.units import one_by_one

_BUS = (("addr", 32), ("wdata", 32), ("rdata", 32), ("write", 1), ("read", 1), ("size", 3),
        ("ready", 1))  # fmt: skip
_STEPS = (("1 ns", 10**9), ("1 ps", 10**12))


class _Change(NamedTuple):
    """A signal, by module and name, has a value from a cycle on."""

    cycle: int
    module: str
    name: str
    value: int


def write_vcd(path: str | Path, log: TimelineLog, clock_hz: int) -> None:
    """Write the register accesses of a recording; as a whole, or not at all.

    Times begin with the program, as in `timeline_of`; they are in nanoseconds where a cycle is a
    whole number of those, else in picoseconds, rounded down; the signal `cycle` is exact.

    Args:
        path: of the file.
        log: of the device.
        clock_hz: of its core.

    Raises:
        CovpError: the file cannot be written.
    """
    step, steps = next(one for one in _STEPS if one[1] % clock_hz == 0 or one is _STEPS[-1])
    signals, inside = _signals(log), windows(phase_spans(log))
    begin, end = (inside[0].start, inside[-1].end) if inside else (log.begin, log.end)
    with written_whole(path) as file:
        file.write(f"$version covp $end\n$timescale {step} $end\n")
        names = _declare(file, signals)
        file.write("#0\n$dumpvars\n")
        for (module, name), width in signals.items():
            file.write(_value(names[module, name], width, 0))
        file.write("$end\n")
        values = dict.fromkeys(signals, 0)
        changes = sorted(_since(_changes(log), begin, end), key=lambda change: change.cycle)
        for cycle, group in groupby(changes, key=lambda change: change.cycle):
            latest = {(change.module, change.name): change.value for change in group}
            new = {key: value for key, value in latest.items() if values[key] != value}
            if not new:
                continue
            new[_CYCLE] = cycle
            values |= new
            if cycle:
                file.write(f"#{cycle * steps // clock_hz}\n")
            for key, value in new.items():
                file.write(_value(names[key], signals[key], value))
        file.write(f"#{(end - begin) * steps // clock_hz}\n")


_CYCLE = "bus", "cycle"


def _signals(log: TimelineLog) -> dict[tuple[str, str], int]:
    """Their widths, by module and name."""
    found = {_CYCLE: 64} | {("bus", name): width for name, width in _BUS}
    units = {job.unit for job in log.jobs}
    for name, place in log.places.items():
        found[name, "select"] = 1
        if place.line is not None:
            found[name, "irq"] = 1
        if name in units:
            found[name, "busy"] = 1
    return found


def _changes(log: TimelineLog) -> Iterator[_Change]:
    """Yield all that changed, in cycles of the device's clock; at one cycle the last one counts."""
    for access in one_by_one(log.accesses):
        start, last = access.start, access.end - 1
        data = "wdata" if access.is_store else "rdata"
        strobe = "write" if access.is_store else "read"
        yield _Change(start, "bus", "addr", access.address)
        yield _Change(start, "bus", "size", access.size)
        yield _Change(start, "bus", strobe, 1)
        yield _Change(start, access.peripheral, "select", 1)
        yield _Change(start if access.is_store else last, "bus", data, access.value)
        yield _Change(last, "bus", "ready", 1)
        for name in (strobe, "ready"):
            yield _Change(last + 1, "bus", name, 0)
        yield _Change(last + 1, access.peripheral, "select", 0)
    for change in log.changes:
        if change.line >= 0:
            yield _Change(change.cycle, change.peripheral, "irq", int(change.level))
    for job in log.jobs:
        yield _Change(job.start, job.unit, "busy", 1)
        yield _Change(job.end, job.unit, "busy", 0)


def _since(changes: Iterable[_Change], begin: int, end: int) -> Iterator[_Change]:
    """Up to a cycle, and counted from another one: what changed earlier is the state there."""
    for change in changes:
        if change.cycle <= end:
            yield change._replace(cycle=max(0, change.cycle - begin))


def _declare(file: TextIO, signals: dict[tuple[str, str], int]) -> dict[tuple[str, str], str]:
    """Write the declarations of the signals; return their short names."""
    names = dict(zip(signals, map(_short, count()), strict=False))
    file.write("$scope module covp $end\n")
    for module, group in groupby(signals, key=lambda key: key[0]):
        file.write(f"$scope module {_identifier(module)} $end\n")
        for key in group:
            width = signals[key]
            bits = f" [{width - 1}:0]" if width > 1 else ""
            file.write(f"$var wire {width} {names[key]} {key[1]}{bits} $end\n")
        file.write("$upscope $end\n")
    file.write("$upscope $end\n$enddefinitions $end\n")
    return names


def _identifier(name: str) -> str:
    """Return a peripheral's name as one of a module."""
    return re.sub(r"\W", "_", name)


def _short(number: int) -> str:
    """Return printable characters, as 18.2.1 has them."""
    digits = ""
    while True:
        digits += chr(33 + number % 94)
        number //= 94
        if not number:
            return digits


def _value(name: str, width: int, value: int) -> str:
    return f"{value}{name}\n" if width == 1 else f"b{value:b} {name}\n"
