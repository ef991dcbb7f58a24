"""`core_area`: the size of cores whose RTL is public, from ``core_area.yaml``.

The file is what ``benchmarks/core_area.py`` writes; it names the tool and the command.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml


@dataclass(frozen=True)
class CoreArea:
    """A core after generic synthesis, without any foundry's library.

    Attributes:
        configuration: of the core, in words.
        package: on PyPI, with its version: where the RTL comes from.
        cells: gates and flip-flops.
        flip_flops: of these.
        memory_bits: of memories of more than 64 words, which are not among the cells.
        transistors: of the cells, in static CMOS.
        kge: thousands of NAND2 with as many transistors (gate equivalents).
        source: the tool with its version, and the command.
    """

    configuration: str
    package: str
    cells: int
    flip_flops: int
    memory_bits: int
    transistors: int
    kge: float
    source: str


class _Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    configuration: str
    package: str
    cells: int
    flip_flops: int
    memory_bits: int
    transistors: int
    kge: float


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    cores: dict[str, _Figures]


@functools.cache
def core_areas() -> dict[str, CoreArea]:
    """All of them, by the name of the core."""
    path = Path(__file__).with_name("core_area.yaml")
    content = msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), _File)
    return {
        name: CoreArea(**msgspec.structs.asdict(one), source=content.source)
        for name, one in content.cores.items()
    }


def core_area(name: str) -> CoreArea | None:
    """The size of a core; None where its RTL is not public or was not synthesized.

    Args:
        name: as in `covp.chip.cores.CORES`, or a variant of it, e.g. "ibex-small".
    """
    return core_areas().get(name)
