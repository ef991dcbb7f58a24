"""Boards without a platform file: the advice for their names, and the file that covp writes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from covp.chip.cores import core_names
from covp.chip.platform_file import load_platform
from covp.chip.platform_file.reader import nearest_core, platforms_dir

from .conftest import Call


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stm32f303re", "its core is near cortex-m4f; `covp new platform stm32f303re --core "),
        ("ESP32-S3", "covp has no core like its own, Xtensa"),
        ("arduino-nano-esp32", "covp has no core like its own, Xtensa"),
        ("esp32-h2", "near rv32imac"),
        ("stm32wb09", "near cortex-m0plus"),
        ("my board", "`covp new platform my-board --core CORE --flash SIZE --ram SIZE`"),
        ("riscv23", "did you mean riscv32"),
        ("zzz", "`covp platforms` lists"),
        ("Raspberry Pi Pico 2", "did you mean raspberry-pi-pico-2"),
        ("nrf52", "did you mean nrf52840"),
        ("stm32f746g-disco", "did you mean stm32f746"),
        ("xiao-esp32-c3", "did you mean esp32-c3"),
        ("stm32f4", "did you mean stm32f401 or stm32f407?"),
        ("esp32", "Xtensa; there are esp32-c3"),
        ("portenta-h7", "near cortex-m7f"),
    ],
)  # fmt: skip
def test_an_unknown_board_is_told_its_core_or_how_to_write_one(
    call: Call, name: str, told: str
) -> None:
    refusal = call("run", "kws", "-p", name).refusal
    assert told in refusal
    assert ("did you mean" in refusal) == ("did you mean" in told)  # nothing far-fetched


def test_the_table_of_chips_names_cores_that_there_are() -> None:
    rows = (platforms_dir() / "chips.txt").read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if row and not row.startswith("#")]
    assert len(rows) == len({row.split()[0] for row in rows}) > 100
    for row in rows:
        core, foreign = nearest_core(row.split()[0], platforms_dir())
        assert (core is None) != (foreign is None), row
        assert core is None or core in core_names(), row


@pytest.mark.parametrize(("core", "start"), [("cortex-m4f", 0), ("cv32e40p", 0x20000000)])
def test_the_file_runs_at_once(call: Call, small: Path, core: str, start: int) -> None:
    size = ("--flash", "512K", "--ram", "96K", "--clock", "84M", "--wait-states", "2")
    told = call("new", "platform", "mine", "--core", core, *size)
    assert told.status == 0 and told.out == "mine.yaml written; now: covp run kws -p mine.yaml\n"
    written = load_platform("./mine.yaml")
    assert (written.core.name, written.clock_hz, written.flash.start) == (core, 84_000_000, start)
    assert (written.flash.bytes, written.ram.bytes) == (512 << 10, 96 << 10)
    at = ("--flash", "512K@0x08000000", "--ram", "96K@0x20010000")
    assert call("new", "platform", "placed", "--core", core, *at).status == 0
    placed = load_platform("./placed.yaml")
    assert (placed.flash.start, placed.ram.start) == (0x08000000, 0x20010000)
    assert not written.is_lower_bound and "flash 2/2" in written.wait_states
    assert len(yaml.safe_load(Path("mine.yaml").read_text())) == 5
    run = call("run", small, "-p", "mine.yaml", "--json")
    assert run.status == 0 and run.document["platform"] == "mine"


def test_a_core_of_ones_own_is_named_from_the_file(call: Call) -> None:
    Path("fast").mkdir()
    Path("fast/core.yaml").write_text("description: fast\nlike: ibex\n")
    Path("boards").mkdir()
    sizes = ("--flash", "1M", "--ram", "64K")
    for name, core in (("own", "./fast"), ("other", "fast")):
        done = call("new", "platform", name, "--core", core, *sizes, "-o", f"boards/{name}.yaml")
        assert done.status == 0, done.err
        assert load_platform(f"boards/{name}.yaml").core.name == "fast"
    assert load_platform("boards/own.yaml").core.name == "fast"
    assert "lower bound" in load_platform("boards/own.yaml").wait_states


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"name": "riscv32"}, "'riscv32' is a platform of covp's own"),
        ({"name": "a b"}, "'a b' cannot be a platform's name"),
        ({"name": "null"}, "'null' cannot be a platform's name"),
        ({"name": "a/b"}, "'a/b' cannot be a platform's name"),
        ({"name": "my.yaml"}, "'my.yaml' cannot be a platform's name"),
        ({"--flash": "1M@here"}, "--flash 1M@here: write a size"),
        ({"--ram": "64K@0x00001000"}, "no platform file: "),
        ({"--core": "cortex-m5"}, "unknown core 'cortex-m5'"),
        ({"--core": "x86-64"}, "this machine's core"),
        ({"--flash": "512Q"}, "'512Q' is not a size"),
        ({"--ram": "100"}, "memory[1]: start and size must be multiples"),
        ({"--clock": "fast"}, "'fast' is not a frequency"),
        ({"--clock": "0"}, "less than a kilohertz"),
        ({"-o": "mine.txt"}, "a platform file ends in .yaml"),
        ({"-o": "none/mine.yaml"}, "none/mine.yaml cannot be written"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    call: Call, changed: dict[str, str], told: str
) -> None:
    options = {"--core": "cortex-m4f", "--flash": "512K", "--ram": "96K"} | changed
    name = options.pop("name", "mine")
    words = [word for pair in options.items() for word in pair]
    assert told in call("new", "platform", name, *words).refusal
    assert not list(Path().iterdir())


def test_no_file_is_overwritten(call: Call) -> None:
    Path("mine.yaml").write_text("kept")
    options = ("--core", "ibex", "--flash", "1M", "--ram", "64K")
    assert "exists already" in call("new", "platform", "mine", *options).refusal
    assert Path("mine.yaml").read_text() == "kept"
