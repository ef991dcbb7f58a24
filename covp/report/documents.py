"""`read_runs`: the JSON documents of runs as types; what older documents do not have is None."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from covp.errors import UsageError
from covp.evaluation.run_files import runs_of
from covp.runtime.devices import device_note

Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class Moved(msgspec.Struct, frozen=True):
    """Bytes of one memory."""

    read: Count = 0
    write: Count = 0
    fetch: Count = 0


Memories = dict[str, Moved]


class CyclesSource(msgspec.Struct, frozen=True):
    """Where cycles come from."""

    kind: str
    model: str = ""
    assumes: str = ""
    error: Amount | None = None


class Offload(msgspec.Struct, frozen=True):
    """Where the cycles of an offloaded layer go."""

    jobs: Count
    setup: Count
    startup: Count
    compute: Count
    memory: Count
    waiting: Count
    rest: Count


class Work(msgspec.Struct, frozen=True):
    """What an accelerator reports that it did of a layer."""

    share: Amount
    jobs: Count | None = None
    macs: Count | None = None
    bytes_read: Count | None = None
    bytes_written: Count | None = None


class Cost(msgspec.Struct, frozen=True):
    """Of a layer, or of what lies between the layers."""

    instructions: Count | None = None
    cycles: Count | None = None
    cycles_by_cause: dict[str, Count] | None = None
    bytes: Memories | None = None
    bytes_by_master: dict[str, Memories] | None = None


class Layer(Cost, frozen=True, kw_only=True):
    """A layer, in the order in which they ran."""

    index: Count
    name: str
    op: str
    target: str
    macs: Count
    schedule: str = ""
    offload: Offload | None = None
    work: Work | None = None
    tensor: str | None = None
    inputs: list[str] | None = None
    shape: list[Count] | None = None
    dtype: str | None = None
    parameter_bytes: Count | None = None
    code_bytes: Count | None = None
    live_bytes: Count | None = None


class EnergyPart(msgspec.Struct, frozen=True):
    """A product of the sum that is the energy."""

    what: str
    count: Count
    unit: str
    pj: Amount
    joules: Amount
    source: str
    low: Amount | None = None
    high: Amount | None = None


class EnergySource(msgspec.Struct, frozen=True):
    """Where the energy comes from."""

    model: str
    assumes: str
    parts: list[EnergyPart]
    low_j: Amount | None = None
    high_j: Amount | None = None


class Peak(msgspec.Struct, frozen=True):
    """What a core or a unit can do in a cycle at most."""

    name: str
    macs_per_cycle: Amount | None = None
    bytes_per_cycle: Amount | None = None
    clock_hz: Count | None = None
    code: str | None = None
    spec: str = ""
    um2: Amount | None = None


class Place(msgspec.Struct, frozen=True):
    """A piece of memory in use."""

    what: str
    address: Count
    bytes: Count


class Region(msgspec.Struct, frozen=True):
    """A memory region."""

    name: str
    kind: str
    address: Count
    size_bytes: Count
    used: list[Place]


class ArenaTensor(msgspec.Struct, frozen=True):
    """What lies in the arena from its first layer to its last."""

    name: str
    kind: str
    offset: Count
    bytes: Count
    first: Count
    last: Count


class Memory(msgspec.Struct, frozen=True):
    """What the program takes."""

    flash_bytes: Count
    ram_bytes: Count
    arena_bytes: Count
    stack_bytes: Count = 0


class Check(msgspec.Struct, frozen=True):
    """How much was compared with the reference."""

    level: str
    layers: Count = 0
    inputs: Count = 0
    worst_error: Amount | None = None


class Schedules(msgspec.Struct, frozen=True):
    """Where the core's schedules come from."""

    layers: Count = 0
    compilers: list[str] = []
    cores: list[str] = []


class Area(msgspec.Struct, frozen=True):
    """The estimated area of an accelerator."""

    name: str
    um2: Amount
    source: str


class MeanError(msgspec.Struct, frozen=True):
    """Between outputs and target values."""

    absolute: Amount | None = None
    squared: Amount | None = None


class Scores(msgspec.Struct, frozen=True):
    """How good a model is on samples with labels."""

    top1: Amount | None = None
    top5: Amount | None = None
    auc: Amount | None = None
    mean_error: MeanError | None = None
    what: str = ""
    other_classes: Count | None = None
    other_bytes: Count | None = None


class Data(Scores, frozen=True, kw_only=True):
    """Of a run with samples."""

    samples: Count
    on: str
    saturated: Amount = 0
    float: Scores | None = None
    litert: Scores | None = None
    litert_reason: str | None = None


class Shown(msgspec.Struct, frozen=True):
    """What a run shows that its user can change."""

    seen: str
    do: str


class Run(msgspec.Struct, frozen=True, tag_field="schema", tag="covp.run/1"):
    """One inference, see docs/json.md."""

    model: str
    platform: str
    device: str
    toolchain: str
    accelerators: list[str]
    instructions: Count | None
    cycles: Count | None
    seconds: Amount | None
    memory: Memory
    layers: list[Layer]
    matches_reference: bool | None
    model_source: str = ""
    covp_version: str = ""
    schedules: Schedules = Schedules()
    warnings: list[str] = []
    advice: list[Shown] = []
    cycles_source: CyclesSource | None = None
    cycles_by_cause: dict[str, Count] | None = None
    bytes: Memories | None = None
    bytes_by_master: dict[str, Memories] | None = None
    energy_j: Amount | None = None
    energy_source: EnergySource | None = None
    core: Peak | None = None
    units: list[Peak] = []
    accelerator_area: list[Area] = []
    mac_coverage: Amount | None = None
    check: Check = Check("none")
    memory_map: list[Region] = []
    arena: list[ArenaTensor] = []
    between: Cost = Cost()
    data: Data | None = None

    @property
    def title(self) -> str:
        """Such as "kws on stm32l4r5 with gemm"."""
        units = f" with {' + '.join(self.accelerators)}" if self.accelerators else ""
        return f"{self.model} on {self.platform}{units}{device_note(self.device)}"


def read_runs(path: Path) -> list[Run]:
    """The runs of a file: ``covp run --json``, ``covp compare --json``, or a list of these.

    Args:
        path: of the file.

    Raises:
        UsageError: the file cannot be read, is no such document, or no model ran in it.
    """
    found = list(runs_of(path, Run))
    if not found:
        raise UsageError(f"{path}: no model ran there")
    return found


def _differences(runs: Sequence[Run]) -> list[str]:
    """What of the runs' titles is not the same in all of them; the titles where all of it is."""
    facts = [
        (run.model, run.platform, " + ".join(run.accelerators) or "core alone", run.device)
        for run in runs
    ]
    differ = [len({*column}) > 1 for column in zip(*facts, strict=True)]
    if not any(differ):
        return [run.title for run in runs]
    return [", ".join(itertools.compress(each, differ)) for each in facts]


def labels(runs: Sequence[Run], files: Sequence[Path], given: Sequence[str]) -> list[str]:
    """A name for each run: given, or what differs between them.

    Args:
        runs: all of them.
        files: where each comes from.
        given: by the user, in the same order; empty: none.

    Raises:
        UsageError: there are names, but not one for each run.
    """
    if given:
        if len(given) != len(runs):
            raise UsageError(f"--label: {len(given)} names for {len(runs)} runs")
        names = list(given)
    else:
        names = _differences(runs)
        if len({*names}) < len(names):
            names = [f"{file.stem}: {name}" for file, name in zip(files, names, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:i].count(name) + 1})"
        for i, name in enumerate(names)
    ]
