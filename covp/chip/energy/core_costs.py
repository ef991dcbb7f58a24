"""Area and energy of a core: published figures, and what they are derived from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from covp.base.struct_errors import place_of, readable
from covp.base.yaml_files import read_yaml
from covp.chip.cores import Core, cores_dir
from covp.chip.energy.coefficients import Coefficient, find_microcontroller
from covp.errors import PlatformError


class CoreArea(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A core after generic synthesis, without any foundry's library.

    Attributes:
        configuration: of the core, in words
        package: on PyPI, with its version: where the RTL comes from
        cells: gates and flip-flops
        flip_flops: of these
        memory_bits: of memories of more than 64 words, which are not among the cells
        transistors: of the cells, in static CMOS
        kge: thousands of NAND2 with as many transistors (gate equivalents)
        source: the tool with its version, and the command
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
        raise PlatformError(
            f"{readable(error, CoreArea)}", where=path, key=place_of(error)
        ) from None


Picojoules = Annotated[float, msgspec.Meta(gt=0, le=1e6)]


class CoreEnergy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Energy of a cycle: of `covp.chip.energy.coefficients.microcontrollers`, or own figures.

    Attributes:
        table: the name of a table; or else
        pj_per_cycle: of the whole chip while the core runs, in pJ (uA/MHz times volts), and
        source: where that figure comes from.
        pj_per_sleep_cycle: while the core sleeps and waits for an accelerator; None: as
            while it runs.
    """

    table: str = ""
    pj_per_cycle: Picojoules | None = None
    source: str = ""
    pj_per_sleep_cycle: Picojoules | None = None

    def problem(self) -> str | None:
        """Return the first broken rule, as the text after "energy"; or None."""
        if bool(self.table) == (self.pj_per_cycle is not None):
            return ": needs either table or pj_per_cycle"
        own = self.pj_per_cycle is not None or self.pj_per_sleep_cycle is not None
        if own and len(self.source.strip()) < 3:
            return ".source: is required: where the figure comes from (data sheet and table, paper)"
        if self.table:
            try:
                find_microcontroller(self.table)
            except PlatformError as error:
                return f".table: {error}"
        return None

    @property
    def run(self) -> Coefficient:
        """pJ of a cycle in which the core runs."""
        if self.pj_per_cycle is None:
            return find_microcontroller(self.table).coefficients["run"].per_cycle
        return self._own(self.pj_per_cycle)

    @property
    def sleep(self) -> Coefficient | None:
        """pJ of a cycle in which the core sleeps; None where it is not known."""
        pj = self.pj_per_sleep_cycle
        return None if pj is None else self._own(pj)

    @property
    def model(self) -> str:
        """The table's name, or "platform file"."""
        return self.table or "platform file"

    @property
    def conditions(self) -> str:
        """Under which the figure holds, as far as known."""
        return find_microcontroller(self.table).about if self.table else ""

    def _own(self, pj: float) -> Coefficient:
        return Coefficient(pj, "pJ/cycle", None, None, None, None, self.source)
