"""The tables of a `RunTrace`, made of what the device kept of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.device.timing.native import DEPTH, ENTRIES
from covp.device.timing.segments import PHASE, CutEvent, Segments
from covp.device.timing.trace import Trace, past
from covp.errors import DeviceError
from covp.exploration.retiming.core_times import ITEM
from covp.exploration.retiming.path import NONE, Cut
from covp.exploration.retiming.run_trace import CodeTable, SegmentTable
from covp.hardware.job_unit import JobUnit
from covp.runtime.measurement import BETWEEN, FIRST_LAYER


def code_table(trace: Trace, memories: Sequence[bytes]) -> CodeTable:
    """Return the code of a run.

    Args:
        trace: of the device.
        memories: see `Segments.memories`.
    """
    blocks = trace.blocks
    sizes = [block.instructions for block in blocks]
    before = np.full((len(blocks), ENTRIES - 1, DEPTH), NONE, np.int32)
    for number, block in enumerate(blocks):
        for entry, way in enumerate(block.before):
            places = past(blocks, way, block.address)
            before[number, entry, : len(places)] = places
    return CodeTable(
        items=np.frombuffer(b"".join(block.packed for block in blocks), ITEM),
        memories=np.frombuffer(b"".join(memories), np.uint8).reshape(-1, 2),
        first=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        address=np.array([block.address for block in blocks], np.int64),
        ends=np.array([block.ends for block in blocks], np.int64),
        before=before,
    )


def segment_table(segments: Segments) -> tuple[list[int], SegmentTable]:
    """Return for each cut the distinct segment that it ends, and the table of distinct segments.

    Args:
        segments: of the device.
    """
    cuts, known = segments.cuts, dict[bytes, int]()
    distinct: list[int] = []
    examples: list[int] = []
    deltas, misses = _deltas(segments), _misses(segments)
    for number in range(len(cuts)):
        runs, operands = _slices(segments, number)
        parts = (runs, operands, deltas[number], misses[number])
        key = b"".join(part.tobytes() for part in parts)
        if key not in known:
            known[key] = len(examples)
            examples.append(number)
        distinct.append(known[key])
    rows = [_slices(segments, number) for number in examples]
    return distinct, SegmentTable(
        runs=np.concatenate([runs for runs, _ in rows]),
        first_run=np.concatenate(([0], np.cumsum([len(runs) for runs, _ in rows]))),
        operands=np.concatenate([operands for _, operands in rows]),
        first_operand=np.concatenate(([0], np.cumsum([len(operands) for _, operands in rows]))),
        instructions=deltas[examples, 0],
        misses=misses[examples],
        constant=np.zeros(len(examples), np.int64),
    )


def _deltas(segments: Segments) -> NDArray[np.int64]:
    """Return instructions, exceptions and cache cycles of each cut."""
    cuts = segments.cuts
    totals = np.column_stack(
        [
            *(cuts[name].astype(np.int64) for name in ("instructions", "exceptions")),
            cuts["memory_cycles"].astype(np.int64),
        ]
    )
    return np.diff(totals, axis=0, prepend=np.zeros((1, totals.shape[1]), np.int64))


def _misses(segments: Segments) -> NDArray[np.int64]:
    """Return the cache misses of each cut."""
    total = segments.misses
    return np.diff(total, axis=0, prepend=np.zeros((1, *total.shape[1:]), np.int64))


def _slices(segments: Segments, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the runs and operands of one cut."""
    cuts = segments.cuts
    runs, operands = (int(cuts[name][number]) for name in ("runs", "operands"))
    before = cuts[number - 1] if number else None
    first = (0, 0) if before is None else (int(before["runs"]), int(before["operands"]))
    return segments.runs[first[0] : runs], segments.operands[first[1] : operands]


def set_constant(
    table: SegmentTable,
    segments: Segments,
    distinct: Sequence[int],
    of_caches: NDArray[np.int64],
) -> None:
    """Set the cycles of exceptions and caches.

    Args:
        table: of `segment_table`; its constants are set.
        segments, distinct: as there.
        of_caches: cycles of each distinct segment that follow from the platform.
    """
    deltas = _deltas(segments)
    for number, segment in enumerate(distinct):
        table.constant[segment] = deltas[number, 1] + deltas[number, 2] - of_caches[segment]


def cuts_of(
    segments: Segments, distinct: Sequence[int], units: Sequence[JobUnit], layers: int
) -> Iterator[Cut]:
    """Yield the cuts that end a segment of the inference.

    Args:
        segments, distinct: as of `segment_table`.
        units: of the program, by number.
        layers: of the program.

    Raises:
        DeviceError: another unit was used.
    """
    numbers = {id(unit): number for number, unit in enumerate(units)}
    events = iter(segments.events)
    instructions = _deltas(segments)[:, 0].tolist()
    for number, (kind, phase) in enumerate(segments.cuts[["kind", "phase"]].tolist()):
        event = CutEvent(PHASE) if kind == PHASE else next(events)
        if phase < BETWEEN:
            continue
        layer = phase - FIRST_LAYER if phase >= FIRST_LAYER else layers
        unit = numbers.get(id(event.unit), NONE)
        if event.unit is not None and unit == NONE:
            raise DeviceError("a unit outside the program was used: it cannot be retimed")
        yield Cut(kind, distinct[number], layer, unit, event.is_over, instructions[number])
