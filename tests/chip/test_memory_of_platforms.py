"""What a run says of its platform's memory: the board's own, zero wait states, or a lower bound."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import yaml

import covp
from covp.chip.platform_file import (
    Platform,
    load_platform,
    platform_aliases,
    platform_names,
    platforms_dir,
)  # fmt: skip
from covp.device.board import core_sources
from covp.device.rtl.cores import rtl_names
from covp.device.stop import Source
from covp.errors import UnknownPlatform, UsageError

BOUND = "a lower bound: flash wait states not counted"
# In core cycles, with the caches on: RM0432 table 13 (L4R5, 120 MHz, range 1 boost), RM0385 table 5
# (F746, 210 to 216 MHz), RM0433 table 17 (H743, VOS0: 4 at half the core's clock), nRF52840's CPU
FLASH = {
    "nucleo-l4r5zi": (5, {"icache": 1024, "dcache": 256}),
    "disco-f746ng": (7, {"icache": 4096, "dcache": 4096}),
    "nucleo-f746zg": (7, {"icache": 4096, "dcache": 4096}),
    "stm32h743": (8, {"icache": 16384, "dcache": 16384}),
    "nrf52840": (2, {"icache": 2048}),
    "arduino-nano-33-ble": (2, {"icache": 2048}),
    "xiao-nrf52840": (2, {"icache": 2048}),
    # RM0090 table 10, RM0368 table 6, RM0440 table 29, RM0351 table 9, RM0456 table 58
    "stm32f407-discovery": (5, {"icache": 1024, "dcache": 128}),
    "nucleo-f401re": (2, {"icache": 1024, "dcache": 128}),
    "nucleo-g474re": (4, {"icache": 1024, "dcache": 256}),
    "nucleo-l476rg": (4, {"icache": 1024, "dcache": 256}),
    "nucleo-l4r5zi-single-bank": (5, {"icache16": 1024, "dcache16": 256}),
    "nucleo-u575zi": (4, {"icache": 8192}),
    # serial flash: cycles of a transfer, 2 or 3 a clock of the flash
    "raspberry-pi-pico": (31, {"xip": 16384}),
    "raspberry-pi-pico-2": (47, {"xip": 16384}),
    "raspberry-pi-pico-2-riscv": (47, {"xip": 16384}),
    "esp32-c3": (31, {"cache": 16384}),
}
ALIASES = {
    alias: path.stem
    for path in platforms_dir().glob("*.yaml")
    for alias in yaml.safe_load(path.read_text()).get("aliases", ())
}
TOYCAR = np.zeros((1, 640), np.int8)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def cycles_of(platform: Platform) -> Source:
    found = core_sources(platform.core, platform).cycles
    assert found is not None
    return found


@pytest.mark.parametrize("name", sorted({*platform_names()} - {"host", *ALIASES}))
def test_every_platform_says_what_its_flash_is(name: str) -> None:
    """A board has wait states and caches; RTL's memory has no wait states; others are bounds."""
    platform = load_platform(name)
    said = cycles_of(platform)
    if name in FLASH:
        waits, caches = FLASH[name]
        sizes = {cache.name: int(str(cache.size).rstrip("K")) for cache in platform.caches}
        in_bytes = {one: size * (1024 if size < 64 else 1) for one, size in sizes.items()}
        assert (platform.flash.waits.fetch, platform.flash.waits.data) == (waits, waits)
        assert in_bytes == caches and set(platform.flash.caches) == set(caches)
        assert f"flash{'1_flash2' * (name == 'stm32h743')} {waits}/{waits}" in said.assumes
        assert BOUND not in said.assumes
    elif platform.core.name in rtl_names():
        assert platform.flash.wait_states == 0 and "zero wait states" in said.assumes
        assert said.error is not None and said.error < 0.03, name
    else:
        assert BOUND in said.assumes and "zero" not in said.assumes and said.error is None


@pytest.mark.parametrize(("alias", "name"), sorted(ALIASES.items()))
def test_an_alias_is_the_same_board(alias: str, name: str) -> None:
    board = load_platform(name)
    assert load_platform(alias) == msgspec.structs.replace(board, name=alias)
    with pytest.raises(UnknownPlatform, match=f"did you mean .*{alias[:8]}"):
        load_platform(f"{alias}x")


def test_a_name_is_of_one_board() -> None:
    stated = [
        name for path in platforms_dir().glob("*.yaml")
        for name in (path.stem, *yaml.safe_load(path.read_text()).get("aliases", ()))
    ]  # fmt: skip
    assert sorted(stated) == platform_names()
    assert len(set(stated)) == len(stated)
    assert platform_aliases() == ALIASES
    shop = """raspberry-pi-pico raspberry-pi-pico-2 raspberry-pi-pico-2-riscv esp32-c3 esp32-c6
        nrf52840-dk nrf5340-dk arduino-nano-33-ble xiao-nrf52840 nucleo-f401re stm32f407-discovery
        nucleo-g474re nucleo-l476rg nucleo-l4r5zi nucleo-l4r5zi-single-bank nucleo-u575zi
        nucleo-h743zi disco-f746ng"""
    assert {*shop.split()} <= {*stated}


@pytest.mark.costly
def test_a_program_runs_under_each_name_of_its_board() -> None:
    """One board is one platform, whatever it was called when the program was compiled."""
    with covp.Session("nucleo-l4r5zi") as session:
        assert session.load(covp.compile("toycar", "stm32l4r5")).run(TOYCAR) is not None
        with pytest.raises(UsageError, match="compiled for cortex-m4, the session runs nucleo"):
            session.load(covp.compile("toycar", "cortex-m4"))


def test_one_chip_has_one_memory() -> None:
    disco, nucleo = load_platform("disco-f746ng"), load_platform("nucleo-f746zg")
    assert (disco.memory, disco.caches) == (nucleo.memory, nucleo.caches)


def test_the_error_is_that_of_model_memory_and_board() -> None:
    """Of published boards: computed here from the figures, for the memory they were taken with."""
    content = json.loads((RESULTS / "boards.json").read_text())
    published = [
        (row["board"], row["cycles"][build] / row["published"] - 1)
        for row in content["rows"]
        for build in ("-O2, memory", "-O3, memory")
    ]
    published += [
        (row["board"], row["cycles"] / row["published"] - 1)
        for row in content["programs"]
        if row["memory"].startswith("wait states")
    ]
    for board, name in (("STM32L4R5", "nucleo-l4r5zi"), ("STM32F746", "disco-f746ng")):
        errors = [abs(error) for where, error in published if where == board]
        found = cycles_of(load_platform(name)).error
        assert found is not None and max(errors) <= found < max(errors) + 0.001
    l4r5 = load_platform("nucleo-l4r5zi")
    slower = [msgspec.structs.replace(region, wait_states=6) for region in l4r5.memory]
    assert cycles_of(msgspec.structs.replace(l4r5, memory=tuple(slower))).error is None
    assert cycles_of(msgspec.structs.replace(l4r5, caches=())).error is None
    assert cycles_of(msgspec.structs.replace(l4r5, timing="m33")).error is None


def of_own(folder: Path, name: str, **flash: object) -> Platform:
    """A shipped platform's file with other keys of its flash; None takes a key away."""
    content = yaml.safe_load((platforms_dir() / f"{name}.yaml").read_text())
    first = {**content["memory"][0], **flash}
    content["memory"][0] = {key: value for key, value in first.items() if value is not None}
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_platform(path)


def test_zero_is_stated_and_nothing_is_a_bound(tmp_path: Path) -> None:
    stated = cycles_of(of_own(tmp_path, "cortex-m4", wait_states=0))
    assert stated.assumes == "zero wait states" and stated.error == pytest.approx(0.053)
    unknown = cycles_of(of_own(tmp_path, "cv32e40p", wait_states=None))
    assert unknown.assumes == BOUND and unknown.error is None
