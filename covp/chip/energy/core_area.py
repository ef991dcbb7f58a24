"""`core_area`: the size of a core after synthesis, from the file ``area.yaml`` of its folder.

``benchmarks/core_area.py`` writes those of covp's cores; each names the tool and the command.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from covp.base.struct_errors import readable
from covp.base.yaml_files import read_yaml
from covp.chip.cores import Core, cores_dir
from covp.errors import PlatformError


class CoreArea(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


def core_areas() -> dict[str, CoreArea]:
    """Return all that come with covp, by the name of the folder: a core, or a variant of one."""
    folders = sorted(path.parent for path in cores_dir().glob("*/area.yaml"))
    return {folder.name: area for folder in folders if (area := _read(folder))}


def core_area(core: Core) -> CoreArea | None:
    """Return the size of a core; None where its RTL is not public or was not synthesized.

    Raises:
        PlatformError: the file says it wrongly.
    """
    return _read(core.folders[0])


def _read(folder: Path) -> CoreArea | None:
    path = folder / "area.yaml"
    if not path.is_file():
        return None
    try:
        return msgspec.convert(read_yaml(path, PlatformError), CoreArea)
    except msgspec.ValidationError as error:
        raise PlatformError(f"{readable(error, CoreArea)}", where=path) from None
