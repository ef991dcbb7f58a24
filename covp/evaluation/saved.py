"""`read_results`: the figures of runs from JSON files that the commands wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from covp.errors import UsageError
from covp.evaluation.run_files import runs_of
from covp.runtime.devices import device_note

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Memory(msgspec.Struct):
    flash_bytes: Count
    ram_bytes: Count


class _Layer(msgspec.Struct):
    target: str
    macs: Count


class _Run(msgspec.Struct, tag_field="schema", tag="covp.run/1"):
    model: str
    platform: str
    device: str
    toolchain: str
    accelerators: list[str]
    instructions: Count | None
    cycles: Count | None
    seconds: Seconds | None
    matches_reference: bool | None
    memory: _Memory
    layers: list[_Layer]
    mac_coverage: float | msgspec.UnsetType | None = msgspec.UNSET


@dataclass(frozen=True)
class SavedRun:
    """The figures of one inference, as a JSON document has them.

    Attributes:
        key: model, platform, device and accelerators: what is compared with its like.
        toolchain: name and version.
        matches_reference: whether the outputs were right.
        figures: by the names of `covp.evaluation.regression.FIGURES`; None where not known.
    """

    key: tuple[str, str, str, tuple[str, ...]]
    toolchain: str
    matches_reference: bool
    figures: dict[str, float | None]

    @property
    def title(self) -> str:
        """The key in words."""
        model, platform, device, accelerators = self.key
        text = f"{model} on {platform}"
        text += f" with {' + '.join(accelerators)}" if accelerators else ""
        return text + device_note(device)


def read_results(path: Path) -> list[SavedRun]:
    """The runs of a file: a document of ``covp run`` or ``compare``, or a list of such documents.

    Raises:
        UsageError: the file cannot be read, is no such document, or has two runs of one kind.
    """
    found: dict[object, SavedRun] = {}
    for run in map(_saved, runs_of(path, _Run)):
        if found.setdefault(run.key, run) != run:
            raise UsageError(f"{path}: two different results of {run.title}")
    return list(found.values())


def _saved(run: _Run) -> SavedRun:
    return SavedRun(
        (run.model, run.platform, run.device.partition(":")[0], tuple(run.accelerators)),
        run.toolchain,
        run.matches_reference is not False,
        {
            "instructions": run.instructions,
            "cycles": run.cycles,
            "ms": None if run.seconds is None else run.seconds * 1e3,
            "flash": run.memory.flash_bytes,
            "ram": run.memory.ram_bytes,
            "offload": _offload(run),
        },
    )


def _offload(run: _Run) -> float | None:
    """The share of the MACs that accelerators did; of older files, that they were to do."""
    macs = sum(layer.macs for layer in run.layers)
    if not macs:
        return None
    if run.mac_coverage is not msgspec.UNSET:
        return run.mac_coverage
    return sum(layer.macs for layer in run.layers if layer.target != "cpu") / macs
