"""The trials that come with covp: one file per core and compiler, one line per layer.

The first line of a file names what its trials share, each further one a layer with a row per
trial: schedule, instructions, cycles, bytes of flash and of scratch memory. All are exact, of the
virtual device. `benchmarks/ship_records.py` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import msgspec

from covp.building.tune.trial import ScheduleTrial
from covp.errors import CovpError

FOLDER = Path(str(files("covp.building.tune") / "shipped"))


class _Head(msgspec.Struct):
    core: str
    compiler: str
    version: int


class _Layer(msgspec.Struct):
    layer: str
    structure: str
    trials: list[tuple[str, int, int | None, int, int]]


_head, _layer = msgspec.json.Decoder(_Head), msgspec.json.Decoder(_Layer)


def file_name(core: str, compiler: str) -> str:
    """Return the name of the file of a core and a compiler."""
    return f"{core}-{compiler.replace(' ', '-')}.jsonl"


def read_shipped_trials(path: Path) -> list[ScheduleTrial]:
    """Return the trials of one file.

    Raises:
        CovpError: the file is damaged.
    """
    head, *lines = path.read_bytes().splitlines()
    try:
        shared = _head.decode(head)
        layers = [_layer.decode(line) for line in lines]
    except msgspec.DecodeError as error:
        raise CovpError(f"{path}: not covp's trials ({error}); install covp again") from None
    return [
        ScheduleTrial(
            layer=one.layer,
            core=shared.core,
            compiler=shared.compiler,
            version=shared.version,
            schedule=schedule,
            instructions=instructions,
            cycles=cycles,
            flash_bytes=flash,
            scratch_bytes=scratch,
            exact=True,
            structure=one.structure,
        )
        for one in layers
        for schedule, instructions, cycles, flash, scratch in one.trials
    ]


def write_shipped_trials(path: Path, trials: Iterable[ScheduleTrial]) -> None:
    """Write exact trials of the virtual device, all of one core, compiler and version."""
    layers: dict[str, list[ScheduleTrial]] = {}
    for trial in trials:
        layers.setdefault(trial.layer, []).append(trial)
    (first, *_), *_ = layers.values()
    head = {"core": first.core, "compiler": first.compiler, "version": first.version}
    lines = [_compact(head), *(_compact(_pack(found)) for found in layers.values())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _pack(trials: list[ScheduleTrial]) -> dict[str, object]:
    rows = [(t.schedule, t.instructions, t.cycles, t.flash_bytes, t.scratch_bytes) for t in trials]
    return {"layer": trials[0].layer, "structure": trials[0].structure, "trials": rows}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
