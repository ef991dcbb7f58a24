"""Slices of what works beside the core: jobs, waiting, interrupts, accesses, transfers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from covp.device.timeline import (
    Access,
    Handling,
    JobSpan,
    LineChange,
    PeripheralPlace,
    Stall,
    Transfer,
)
from covp.report.timeline.tracks import Slice, of_args

_BURST = 64
"""Cycles between two transfers of a bus master that are shown as one."""


def job_slices(jobs: Sequence[JobSpan]) -> Iterator[Slice]:
    """Yield a unit's jobs, each with its start-up and what took longer, compute or memory."""
    for number, (start, end, _, job) in enumerate(jobs):
        timing = job.timing
        yield Slice(
            f"job {number}",
            start,
            end,
            of_args(
                [
                    ("startup", timing.startup),
                    ("compute", timing.compute),
                    ("memory", timing.memory),
                    ("core_waited", job.waited),
                    ("macs", job.macs),
                    ("bytes_read", job.traffic.read),
                    ("bytes_written", job.traffic.written or job.stored),
                    *job.numbers.items(),
                ]
            ),
        )
        begun = min(start + timing.startup, end)
        done = min(start + timing.cycles, end)
        what = "compute" if timing.compute >= timing.memory else "memory"
        parts = (("start-up", start, begun), (what, begun, done), ("ended, seen late", done, end))
        yield from (Slice(*part) for part in parts if part[1] < part[2])


def engine_slices(jobs: Sequence[JobSpan]) -> dict[str, list[Slice]]:
    """Return the steps of a unit's engines by their names; empty where they are not told apart."""
    found: dict[str, list[Slice]] = {}
    for begin, _, _, job in jobs:
        steps = job.steps
        if steps is None:
            continue
        columns = (steps.engine, steps.name, steps.start, steps.end)
        for engine, name, start, end in zip(*(column.tolist() for column in columns), strict=True):
            one = Slice(steps.names[name], begin + start, begin + end)
            found.setdefault(steps.engines[engine], []).append(one)
    return found


def stall_slices(stalls: Sequence[Stall], jobs: Sequence[JobSpan]) -> list[Slice]:
    """Return slices of the core's waiting, named by the unit whose job it waited for."""
    units = {job.start + job.record.timing.cycles: job.unit for job in jobs}
    return [
        Slice(
            "asleep (WFI)" if stall.is_asleep else "stalled",
            stall.start,
            stall.end,
            of_args([("until_end_of", units.get(stall.end))]),
        )
        for stall in stalls
    ]


def line_slices(changes: Sequence[LineChange], end: int) -> list[Slice]:
    """Return a slice for each time in which an interrupt line was up."""
    found, since = [], None
    for change in changes:
        if change.level:
            since = change.cycle
        elif since is not None:
            found.append(Slice("up", since, change.cycle))
            since = None
    return [*found, *([Slice("up", since, end)] if since is not None else [])]


def handler_slices(
    handlings: Sequence[Handling], names: Mapping[int, str], end: int
) -> list[Slice]:
    """Return interrupts from their being taken to the handler's return, nested as they were.

    ``names``: of the peripherals, by line; ``end``: cycle past the last.
    """
    found: list[Slice] = []
    open_places: list[int] = []
    for cycle, line in handlings:
        if line is not None:
            name = names.get(line)
            open_places.append(len(found))
            found.append(Slice(f"line {line}" + (f": {name}" if name else ""), cycle, end))
        elif open_places:
            place = open_places.pop()
            found[place] = Slice(found[place].name, found[place].start, cycle)
    return found


def access_slices(accesses: Iterable[Access], place: PeripheralPlace) -> list[Slice]:
    """Return accesses to a peripheral, named by the register."""
    return [
        Slice(
            _access_name(access, place),
            access.start,
            access.end,
            {
                "address": f"0x{access.address:08x}",
                "value": f"0x{access.value:x}",
                "bytes": access.size,
            },
        )
        for access in accesses
    ]


def _access_name(access: Access, place: PeripheralPlace) -> str:
    offset = access.address - place.base
    register = place.registers.at(offset)
    name = register.name if register else f"0x{offset:x}"
    return f"{'write' if access.is_store else 'read'} {name}"


def one_by_one(accesses: Iterable[Access]) -> Iterator[Access]:
    """Yield accesses of a block of code in cycles of their own, as the bus makes them.

    Each takes a cycle at least, and none begins before the one before it has ended.
    """
    free = 0
    for access in accesses:
        start = max(access.start, free)
        free = max(access.end, start + 1)
        yield access._replace(start=start, end=free)


def transfer_slices(transfers: Iterable[Transfer]) -> list[Slice]:
    """Return bursts of a bus master."""
    found: list[Slice] = []
    first = last = read = written = 0
    for transfer in transfers:
        if read + written and transfer.cycle > last + _BURST:
            found.append(_burst(first, last, read, written))
            read = written = 0
        if not read + written:
            first = transfer.cycle
        last = transfer.cycle
        read += 0 if transfer.is_write else transfer.size
        written += transfer.size if transfer.is_write else 0
    return [*found, *([_burst(first, last, read, written)] if read + written else [])]


def _burst(first: int, last: int, read: int, written: int) -> Slice:
    return Slice("transfer", first, last + 1, {"bytes_read": read, "bytes_written": written})
