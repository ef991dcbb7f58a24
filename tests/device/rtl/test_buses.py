"""Cores behind AHB-Lite and AXI4-Lite, a bus of one's own, and sources from lists of files."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.chip.cores import find_core
from covp.chip.platform_file import Platform, load_platform
from covp.device.rtl import build
from covp.device.rtl.cores import find_sources, rtl_of
from covp.errors import PlatformError, ToolchainError
from covp.testing.core_check import check_core
from tests.accelerator.test_offload import network
from tests.device.rtl.conftest import need_rtl
from tests.device.rtl.test_core_check import board

BOARD = """
name: board
core: {core}
clock_hz: 100_000_000
memory:
  - {{name: flash, kind: flash, start: 0x20000000, size: 4M, wait_states: {flash}}}
  - {{name: ram, kind: ram, start: 0x40000000, size: 1M, wait_states: {ram}}}
accelerators: {{base: 0xF0000000{irq}}}
"""
CORES = Path(__file__).parent / "cores"


def platform(core: str, folder: Path, flash: int = 0, ram: int = 0) -> Platform:
    """A board with a core of these tests, or of covp, and wait states."""
    place = str(CORES / core) if (CORES / core).is_dir() else core
    file = folder / f"{core}.yaml"
    irq = "" if core.startswith("picorv32") else ", irq: 11"
    file.write_text(BOARD.format(core=place, flash=flash, ram=ram, irq=irq), "utf-8")
    return load_platform(file)


def cycles(on: Platform, spec: str | None) -> int:
    """Cycles of a network on RTL, whose outputs are the reference's."""
    graph = network()
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    with covp.Session(on, device="rtl") as session:
        program = covp.compile(graph, on, [spec] if spec else [], allow_slower=True)
        np.testing.assert_array_equal(session.load(program).run(x), program.reference([x])[0])
        return session.profile().cycles or 0


@pytest.mark.slow
@pytest.mark.parametrize("spec", [None, "qconv2d:wait=poll", "qconv2d:wait=sleep"])
@pytest.mark.parametrize("waits", [(0, 0), (1, 0), (0, 2), (3, 1)])
def test_ahb_takes_the_cycles_of_obi(waits, spec, tmp_path):
    need_rtl("ibex")
    ahb, obi = (cycles(platform(core, tmp_path, *waits), spec) for core in ("ibex-ahb", "ibex"))
    assert ahb == obi if spec is None else abs(ahb - obi) <= 5  # when a driver looks


@pytest.mark.costly
def test_what_ahb_cannot_do_is_named(tmp_path):
    """Ibex writes three bytes of a misaligned word in one access; AHB has no such transfer."""
    need_rtl("ibex")
    found = list(check_core(platform("ibex-ahb", tmp_path), 100))[-1]
    assert found.name == "misaligned accesses" and "after sw a3, 1(s1)" in str(found.difference)


@pytest.mark.costly
def test_axi4_lite(tmp_path):
    need_rtl("picorv32")
    rows = list(check_core(platform("picorv32-axi", tmp_path), 500))
    assert [row.difference for row in rows] == [None] * len(rows)
    for waits, spec in itertools.product([(0, 0), (2, 1)], [None, "qconv2d:wait=poll"]):
        assert cycles(platform("picorv32-axi", tmp_path, *waits), spec) > 0


@pytest.mark.costly
def test_a_bus_of_ones_own(tmp_path):
    """The header of OBI under another name, whose ports the wrapper declares itself."""
    need_rtl("ibex")
    place = tmp_path / "own"
    place.mkdir()
    header = (Path(build.__file__).parent / "harness" / "obi.h").read_text("utf-8")
    (place / "mine.h").write_text(header, "utf-8")
    (place / "core.yaml").write_text("description: Ibex\nlike: ibex\n", "utf-8")
    (place / "rtl.yaml").write_text("bus: ./mine.h\n", "utf-8")
    wrapper = Path(rtl_of(find_core("ibex")).wrapper).read_text("utf-8")
    ports = (Path(build.__file__).parent / "harness" / "covp_ports.svh").read_text("utf-8")
    body = ports.partition("`elsif COVP_OWN_BUS\n`else\n")[2].partition("`endif\n`endif\n")[0]
    own = "\n".join(["`define COVP_OBI", body + "`endif", "`undef COVP_OBI"]).rstrip()
    last = own.rindex(",")  # the list ends with them
    wrapper = wrapper.replace(
        '`include "covp_ports.svh"\n',
        f'`include "covp_ports.svh"\n,{own[:last]}{own[last + 1 :]}\n',
    )
    (place / "wrapper.sv").write_text(wrapper, "utf-8")
    rows = list(check_core(board(tmp_path, "own"), 200))
    assert [row.difference for row in rows] == [None] * len(rows)


LISTS = {
    "core.f": "// all\n+incdir+$INC +define+WIDE=1+NARROW\n-f more.f\nrtl/top.v /* the\n top */\n",
    "more.f": "# first\n${RTL}/first.v\n",
    "rtl/top.v": "",
    "rtl/first.v": "",
    "include/defines.vh": "",
}


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A core whose sources are in a list of files, elsewhere."""
    for name, text in LISTS.items():
        (tmp_path / "hdl" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "hdl" / name).write_text(text, "utf-8")
    place = tmp_path / "listed"
    place.mkdir()
    (place / "core.yaml").write_text("description: a core\nisa: rv32i\n", "utf-8")
    (place / "wrapper.sv").write_text("", "utf-8")
    (place / "rtl.yaml").write_text(
        "licence: ISC\nbus: ahb\nroot: ../hdl\nfilelist: core.f\n"
        "variables: {INC: include, RTL: rtl}\n",
        "utf-8",
    )
    return place


def test_a_list_of_files(listed):
    core = find_core(str(listed))
    found = find_sources(core, rtl_of(core))
    root = listed.parent / "hdl"
    assert [path.resolve() for path in found.files] == [
        root / "rtl/first.v",
        root / "rtl/top.v",
        listed / "wrapper.sv",
    ]
    assert [path.resolve() for path in found.include] == [root / "include"]
    assert found.defines == ("WIDE=1", "NARROW")
    assert len(list(found.contents())) == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("listed/rtl.yaml", "variables: {INC: include, RTL: rtl}", "", r"names \$INC; say where"),
        ("hdl/more.f", "# first", "-y lib", "-y is not understood"),
        ("hdl/more.f", "# first", "-f more.f", "name one another"),
        ("hdl/more.f", "first.v", "absent.v", "there is no file .*absent.v"),
        ("hdl/core.f", "more.f", "absent.f", "cannot be read"),
        ("listed/rtl.yaml", "bus: ahb", "bus: amba", "is none of obi, handshake, ahb, axi4-lite"),
        ("listed/rtl.yaml", "bus: ahb", "bus: ./amba.h", "there is no file .*amba.h"),
        ("listed/rtl.yaml", "root: ../hdl", "root: ../hdl\npackage: p", "in one of them"),
        ("listed/rtl.yaml", "filelist: core.f", "", "there are none; name them"),
        ("listed/rtl.yaml", "bus: ahb", "bus: ahb\npatches: [a.patch]", "no file .*a.patch"),
    ],
)
def test_a_wrong_list(file, old, new, said, listed):
    path = listed.parent / file
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    core = find_core(str(listed))
    with pytest.raises(PlatformError, match=said) as caught:
        find_sources(core, rtl_of(core))
    assert "\n" not in str(caught.value)


def test_a_patch_that_does_not_fit(listed):
    with (listed / "rtl.yaml").open("a") as file:
        file.write("patches: [a.patch]\n")
    (listed / "a.patch").write_text("--- a/rtl/top.v\n+++ b/rtl/top.v\n@@ -1 +1 @@\n-x\n+y\n")
    core = find_core(str(listed))
    with pytest.raises(PlatformError, match="no unified diff that fits"):
        find_sources(core, rtl_of(core)).patched(listed.parent / "made")


def test_a_package_that_covp_does_not_bring(listed):
    (listed / "rtl.yaml").write_text(
        "licence: ISC\nbus: ahb\npackage: pythondata-cpu-absent\nsources: [core.v]\n", "utf-8"
    )
    core = find_core(str(listed))
    with pytest.raises(ToolchainError, match="missing: pip install pythondata-cpu-absent"):
        find_sources(core, rtl_of(core))
