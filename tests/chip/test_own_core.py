"""A core in a folder of the user's: read, run, swept, in other processes, on RTL, calibrated."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import pytest

from covp.building.platform_content import platform_content
from covp.building.tune.records import Records
from covp.chip.cores import all_cores, find_core
from covp.chip.isa import Isa
from covp.chip.platform_file import Platform, load_platform
from covp.cli.main import main
from covp.device.rtl.cores import rtl_of
from covp.device.rtl.device import RtlDevice
from covp.device.timing.model import core_timing, load_timing
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError
from covp.evaluation.varied import vary_design
from covp.exploration.sweep.content import value_content
from tests.conftest import load
from tests.device.rtl.conftest import need_rtl

BOARD = """\
name: board
core: ./fast-ibex
clock_hz: 100_000_000
memory:
  - {name: flash, kind: flash, start: 0x20000000, size: 4M, wait_states: 0}
  - {name: ram, kind: ram, start: 0x80000000, size: 1M}
"""
CORE = "description: Ibex with a single-cycle multiplier and two stages\nlike: ibex\n"
RTL = "parameters: {BRANCH_TARGET_ALU: 0, WRITEBACK_STAGE: 0}\n"
TIMING = "source: a test\ninstructions: rv32\ncycles: {mul: 5}\n"
LOOP = "start: li a0, 10\nagain: mul a1, a1, a0\n addi a0, a0, -1\n bnez a0, again\nend: j end"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A platform file with the folder of its core beside it, and another current folder."""
    core = tmp_path / "fast-ibex"
    core.mkdir()
    (tmp_path / "board.yaml").write_text(BOARD)
    (core / "core.yaml").write_text(CORE)
    (core / "rtl.yaml").write_text(RTL)
    monkeypatch.chdir("/")
    return core


def board_of(folder: Path) -> Platform:
    return load_platform(folder.parent / "board.yaml")


def cycles_of(platform: Platform) -> int | None:
    loaded = load("riscv32", LOOP, device=VirtualDevice(platform))
    with loaded.device:
        return loaded.run().cycles


def test_what_it_does_not_say_is_as_in_the_other(folder: Path) -> None:
    core, ibex = board_of(folder).core, find_core("ibex")
    assert (core.name, core.isa, core.gcc_flags) == ("fast-ibex", ibex.isa, ibex.gcc_flags)
    assert core.like == ("ibex", "rv32imc") and core.allows_misaligned
    own, other = rtl_of(core), rtl_of(ibex)
    assert own.parameters == {**other.parameters, "BRANCH_TARGET_ALU": 0, "WRITEBACK_STAGE": 0}
    assert (own.sources, own.wrapper) == (other.sources, other.wrapper)


def test_the_error_of_another_core_is_not_its_own(folder: Path) -> None:
    assert core_timing(find_core("ibex")).errors == load_timing("ibex").errors != {}
    model = core_timing(board_of(folder).core)
    assert (model.name, model.errors) == ("ibex", {})


@pytest.mark.costly
def test_its_timing_model(folder: Path) -> None:
    platform = board_of(folder)
    before = cycles_of(platform)
    (folder / "timing.yaml").write_text(TIMING)
    assert cycles_of(platform) == 31 + 10 * 4 != before  # read anew
    assert core_timing(platform.core).name == "fast-ibex"


def test_its_content_is_its_key(folder: Path) -> None:
    platform = board_of(folder)
    first, rows = platform.core.key, platform_content(platform)
    assert first.startswith("fast-ibex-") and find_core("ibex").key == "ibex"
    assert value_content("platform.core", str(folder)) == first
    (folder / "timing.yaml").write_text(TIMING)
    assert platform.core.key != first and platform_content(platform) != rows
    moved = folder.parent / "elsewhere" / folder.name
    moved.parent.mkdir()
    second = platform.core.key
    assert find_core(str(folder.rename(moved))).key == second


def test_records_of_the_tuner_are_of_its_content(folder: Path, tmp_path: Path) -> None:
    core = board_of(folder).core
    for name in (core.key, "ibex", "ibex-00000000"):
        (tmp_path / f"{name}-zig-0.17.0.jsonl").write_text("")
    files = sorted(tmp_path.glob("*.jsonl"))
    records = Records(files)
    records.open(core.key)
    left = {path.name.partition("-zig")[0] for path, _ in records._unread}
    assert left == {"ibex", "ibex-00000000"}


@pytest.mark.costly
def test_in_another_process(folder: Path) -> None:
    platform = pickle.loads(pickle.dumps(board_of(folder)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(cycles_of, (platform,)) == cycles_of(platform)


def test_as_a_varied_value(folder: Path) -> None:
    platform, _ = vary_design("ibex", (), {"platform.core": str(folder)})
    assert platform.core == board_of(folder).core


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("core.yaml", "like: ibx\n", "core.yaml: unknown core 'ibx': did you mean ibex"),
        ("core.yaml", "like: ../fast-ibex\n", "like: it leads back to this folder"),
        ("core.yaml", "like: ./none\n", "none: a core is a folder with a file core.yaml"),
        (
            "core.yaml",
            "isa: rv32imx\n",
            "isa: 'rv32imx': no extension 'x'; known are i, m",
        ),
        ("core.yaml", "isa: rv32imc_zba_zbb\n", "no emulator here executes 'zba'; leave it out"),
        ("core.yaml", "isa: armv9\n", "core.yaml: isa: 'armv9'"),
        ("core.yaml", "like: cortex-m4f\nisa: armv7e-m+dsp\n", "the key zig_cpu is missing"),
        ("core.yaml", "lik: ibex\n", "unknown key 'lik': did you mean like"),
        ("rtl.yaml", "parameters: 3\n", "rtl.yaml: parameters: Expected a mapping"),
        ("rtl.yaml", "wraper: x\n", "unknown key 'wraper': did you mean wrapper"),
        ("rtl.yaml", "sources: [./none.v]\n", "the RTL of fast-ibex: there is no file"),
    ],
)
def test_what_is_wrong_with_it(folder: Path, file: str, text: str, said: str) -> None:
    need_rtl("ibex")
    (folder / file).write_text(text)
    with pytest.raises(PlatformError) as caught:
        RtlDevice(board_of(folder))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_extensions_that_change_nothing() -> None:
    assert Isa.parse("rv32imc_zicsr_zifencei") == Isa.parse("rv32imc")


def test_a_name_of_covp_s_is_taken(folder: Path) -> None:
    folder.rename(folder.with_name("ibex"))
    path = folder.parent / "board.yaml"
    path.write_text(BOARD.replace("fast-ibex", "ibex"))
    with pytest.raises(PlatformError, match=r"board.yaml: core: .*rename it"):
        load_platform(path)


def test_every_core_says_what_it_is() -> None:
    assert all(core.description and core.folders for core in all_cores())


@pytest.mark.slow
def test_another_configuration_of_ibex_is_fitted_to_its_rtl(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_rtl("ibex")
    files = [folder.parent / "board.yaml", *folder.iterdir()]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 25
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", str(files[0]), "--device", "rtl"])
    assert ended.value.code == 0
    assert "wrote" in capsys.readouterr().out
    errors = core_timing(board_of(folder).core).errors
    assert errors["zero wait states"] <= 0.001 and len(errors) == 5
    assert max(errors.values()) <= 0.005
    cycles = []
    devices: tuple[Any, ...] = (VirtualDevice, RtlDevice)
    for make in devices:
        loaded = load("riscv32", LOOP, device=make(board_of(folder)))
        with loaded.device:
            cycles.append(loaded.run().cycles)
    assert cycles[0] == pytest.approx(cycles[1], rel=0.001)
