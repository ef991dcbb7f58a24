"""One placement: firmware lies where the simulation put the program, and is refused with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import covp
from covp.chip.platform_file import Platform, load_platform
from covp.compilers.elf import ElfImage
from covp.errors import CapacityError
from covp.evaluation import build
from covp.firmware import Project, export_project, link_project

TWO_RAMS = """
name: two-rams
core: cortex-m7f
clock_hz: 480000000
memory:
  - {{name: flash, kind: flash, start: 0x08000000, size: 2M}}
  - {{name: dtcm, kind: ram, start: 0x20000000, size: {dtcm}}}
  - {{name: axi, kind: ram, start: 0x24000000, size: {axi}}}
peripherals: [{{name: uart0, model: uart, base: 0x40011000}}]
"""


def board(folder: Path, dtcm: str, axi: str) -> Platform:
    path = folder / "two-rams.yaml"
    path.write_text(TWO_RAMS.format(dtcm=dtcm, axi=axi))
    return load_platform(path)


def project(platform: Platform) -> Project:
    return Project.of(build("kws", platform))  # its arena takes 16 KB


def region(platform: Platform, address: int) -> str:
    found = platform.region_of(address)
    assert found is not None
    return found.name


@pytest.mark.costly
@pytest.mark.parametrize(("dtcm", "expected"), [("128K", "dtcm"), ("16K", "axi")])
def test_the_arena_lies_where_the_simulation_has_it(
    tmp_path: Path, dtcm: str, expected: str
) -> None:
    platform = board(tmp_path, dtcm, "64K")
    made = project(platform)
    with covp.Session(platform) as session:
        simulated = session.load(made.program)
        assert region(platform, simulated.address("kws_arena")) == expected
    symbols = ElfImage(link_project(made).read_bytes()).symbols
    assert region(platform, symbols["arena"].address) == expected
    assert region(platform, symbols["covp_stack_top"].value - 1) == "dtcm"


@pytest.mark.costly
def test_what_does_not_fit_is_refused_by_both_alike(tmp_path: Path) -> None:
    platform = board(tmp_path, "16K", "12K")
    made = build("kws", platform)
    with covp.Session(platform) as session, pytest.raises(CapacityError) as simulated:
        session.load(made.program)
    with pytest.raises(CapacityError) as exported:
        export_project(Project.of(made), tmp_path / "out")
    assert str(exported.value) == str(simulated.value)
    assert "what may help" in str(exported.value)
    assert not (tmp_path / "out").exists()
