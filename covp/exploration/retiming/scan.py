"""`scan`: the native walk of a path by many designs; ``scan.c`` mirrored with ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.compilers.host_compiler import compile_for_host
from covp.errors import DeviceError
from covp.exploration.retiming.run_trace import STEP

MAX_UNITS = 64
u64, pointer = ctypes.c_uint64, ctypes.c_void_p
Integers = NDArray[np.int64]


class _Path(ctypes.Structure):
    _fields_ = (
        ("steps", pointer), ("step_count", u64), ("segments", pointer), ("instructions", pointer),
        ("segment_count", u64), ("unit_count", u64), ("layer_count", u64), ("jobs", pointer),
        ("job_counts", pointer), ("core", pointer), ("unit", pointer),
    )  # fmt: skip


class _Results(ctypes.Structure):
    _fields_ = tuple(
        (name, pointer)
        for name in ("cycles", "waiting", "asleep", "instructions", "busy", "layers")
    )


@dataclass(frozen=True)
class UnitRows:
    """A unit's jobs in all designs.

    Attributes:
        cycles: (rows, jobs).
        row: of each design.
    """

    cycles: Integers
    row: NDArray[np.int32]


@dataclass(frozen=True)
class Walked:
    """Totals of each design.

    Attributes:
        cycles, instructions: of the run.
        waiting: cycles in which the core was stalled or slept.
        asleep: those of them in WFI.
        busy: (designs, units): cycles of jobs.
        layers: (designs, layers and what lies between): cycles; None where not wanted.
    """

    cycles: Integers
    instructions: Integers
    waiting: Integers
    asleep: Integers
    busy: Integers
    layers: Integers | None


def walk(
    path: NDArray[Any],
    segments: Integers,
    instructions: Integers,
    core: NDArray[np.int32],
    units: Sequence[UnitRows],
    layers: int | None,
) -> Walked:
    """Walk a path.

    Args:
        path: of the type `STEP`.
        segments: cycles, (cores, segments).
        instructions: of each segment.
        core: of each design its row of ``segments``.
        units: by number.
        layers: how many places there are for layers; None: their cycles are not wanted.

    Raises:
        DeviceError: more than 64 units.
    """
    if len(units) > MAX_UNITS:
        raise DeviceError(f"{len(units)} accelerators; {MAX_UNITS} can be retimed")
    designs = len(core)
    cycles, executed, waiting, asleep = np.zeros((4, designs), np.int64)
    busy = np.zeros((designs, len(units)), np.int64)
    by_layer = None if layers is None else np.zeros((designs, layers), np.int64)
    found = Walked(cycles, executed, waiting, asleep, busy, by_layer)
    steps, table = np.ascontiguousarray(path, STEP), np.ascontiguousarray(segments, np.int64)
    retired, rows = np.ascontiguousarray(instructions, np.int64), np.ascontiguousarray(core)
    jobs = [np.ascontiguousarray(unit.cycles, np.int64) for unit in units]
    own = [np.ascontiguousarray(unit.row, np.int32) for unit in units]
    counts = (u64 * max(1, len(jobs)))(*(one.shape[1] for one in jobs))
    pointers = (pointer * max(1, len(jobs)))(*(one.ctypes.data for one in jobs))
    of_units = (pointer * max(1, len(own)))(*(one.ctypes.data for one in own))
    native = _Path(
        steps.ctypes.data, len(steps), table.ctypes.data, retired.ctypes.data, len(retired),
        len(units), layers or 0, ctypes.addressof(pointers), ctypes.addressof(counts),
        rows.ctypes.data, ctypes.addressof(of_units),
    )  # fmt: skip
    results = _Results(
        *(one.ctypes.data for one in (found.cycles, found.waiting, found.asleep)),
        found.instructions.ctypes.data,
        found.busy.ctypes.data,
        None if found.layers is None else found.layers.ctypes.data,
    )
    _in_threads(native, designs, results)
    return found


def _in_threads(path: _Path, designs: int, results: _Results) -> None:
    workers = min(os.cpu_count() or 1, 1 + designs // 1024)
    ends = np.linspace(0, designs, workers + 1).astype(int).tolist()
    library = _library()

    def part(first: int, last: int) -> None:
        library.scan(ctypes.byref(path), u64(first), u64(last), ctypes.byref(results))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(part, ends[:-1], ends[1:]))


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    source = Path(__file__).with_name("scan.c")
    library = ctypes.CDLL(str(compile_for_host("scan", "the walk of many designs", [source])))
    library.scan.restype, library.scan_bytes.restype = None, u64
    mirrored = STEP.itemsize + ctypes.sizeof(_Path) + ctypes.sizeof(_Results)
    assert library.scan_bytes() == mirrored, "C and Python differ"
    return library
