"""Flash of a virtual board under the real OpenOCD: its stock drivers erase, program and verify."""

from __future__ import annotations

import functools
import random
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.elf import ElfImage
from covp.device.debug.program_file import run_firmware
from covp.device.debug.remote_bitbang import debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.evaluation import build
from covp.firmware import Project, link_project
from covp.peripherals._stm32 import Rcc

from .gdb_bench import run_gdb
from .openocd_bench import OpenOcd, openocd

FLASH = 0x08000000
BOARDS = {
    "stm32f746": "board/stm32f7discovery.cfg",
    "nucleo-f746zg": "board/st_nucleo_f7.cfg",
    "stm32l4r5": "board/st_nucleo_l4.cfg",
    "disco-f746ng": "board/stm32f7discovery.cfg",
    "nucleo-l4r5zi": "board/st_nucleo_l4.cfg",
}
WITH_CACHES = ("disco-f746ng", "nucleo-l4r5zi")
SECTORS = {"stm32f746": [32, 32, 32, 32, 128, 256, 256, 256], "stm32l4r5": [4] * 512}
SECONDS = 60


@dataclass
class Board:
    """A virtual board at an ST-Link's TCP port."""

    device: VirtualDevice
    target: DebugTarget
    options: list[str]

    @contextmanager
    def openocd(self, *more: str) -> Iterator[OpenOcd]:
        with openocd(*self.options, *more) as ocd:
            yield ocd


@contextmanager
def open_board(platform: str) -> Iterator[Board]:
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        with DebugServer(debug_port("stlink", target)) as server:
            backend = f"hla_stlink_backend tcp {server.port}"
            yield Board(device, target, ["-f", BOARDS[platform], "-c", backend])
        assert not server.failures


@pytest.mark.parametrize("platform", SECTORS)
def test_the_stock_driver(platform: str, tmp_path: Path) -> None:
    """The driver's loader runs on the emulated core, from RAM."""
    data = random.Random(1).randbytes(5003)
    image = tmp_path / "image.bin"
    image.write_bytes(data)
    with open_board(platform) as board, board.openocd() as ocd:
        device = board.device
        ocd("reset init")
        ocd("flash probe 0")
        sizes = re.findall(r"#\s*\d+: 0x\w+ \(0x(\w+) ", ocd("flash info 0"))
        assert [int(size, 16) // 1024 for size in sizes] == SECTORS[platform]
        device.write(FLASH, bytes(0x20000))
        ocd(f"flash write_image erase {image} {FLASH + 0x8000}")
        ocd(f"verify_image {image} {FLASH + 0x8000}")
        written = device.read(FLASH, 0x20000)
        assert written[0x8000 : 0x8000 + len(data)] == data
        assert not any(written[:0x8000]) and not any(written[0x10000:])
        ocd("flash erase_sector 0 1 1")
        erased = 1024 * SECTORS[platform][1]
        assert device.read(FLASH + erased, erased) == b"\xff" * erased
        assert device.read(FLASH, erased) == bytes(erased)
        # not erased, all bits 0: ECC refuses it, without ECC it changes nothing
        assert bool(ocd.attempt(f"flash write_image {image} {FLASH}")[0]) == ("l4" in platform)
        assert device.read(FLASH, erased) == bytes(erased)
        assert ocd.attempt(f"verify_image {image} {FLASH}")[0]
        ocd("reset halt")


@pytest.mark.parametrize("platform", SECTORS)
def test_protection_and_mass_erase(platform: str, tmp_path: Path) -> None:
    """Option bytes by the driver's own commands; they outlive a reset."""
    driver = "stm32l4x" if "l4" in platform else "stm32f2x"
    image = tmp_path / "image.bin"
    image.write_bytes(bytes(64))
    with open_board(platform) as board, board.openocd() as ocd:
        ocd("reset init")
        ocd("flash probe 0")
        ocd("flash protect 0 1 1 on")
        ocd("reset init")
        ocd("flash probe 0")
        ocd("flash info 0")
        protected = re.findall(r"#\s*(\d+): .*\) protected", ocd("flash info 0"))
        assert protected == ["1"]
        start = FLASH + 1024 * SECTORS[platform][0]
        assert ocd.attempt(f"flash write_image {image} {start}")[0]
        assert board.device.read(start, 64) == b"\xff" * 64
        ocd("flash protect 0 1 1 off")
        ocd("reset init")
        ocd("flash probe 0")
        ocd(f"flash write_image {image} {start}")
        assert board.device.read(start, 64) == bytes(64)
        ocd(f"{driver} mass_erase 0")
        assert board.device.read(start, 64) == b"\xff" * 64


@functools.cache
def firmware(platform: str) -> Path:
    """The ELF file of an exported model: a self-test, and its status."""
    return link_project(Project.of(build("kws", platform)))


def places(elf: Path) -> tuple[int, int]:
    """Addresses of the end of the firmware, and of its status."""
    symbols = ElfImage(elf.read_bytes()).symbols
    return symbols["covp_exit"].address, symbols["covp_exit_status"].address


@pytest.mark.costly
@pytest.mark.parametrize(
    "platform",
    [pytest.param(n, marks=[pytest.mark.slow] if n in WITH_CACHES else []) for n in BOARDS],
)
def test_a_firmware_is_programmed_and_runs(platform: str) -> None:
    """OpenOCD's own command for it; the same instructions as without a debugger."""
    elf = firmware(platform)
    end, status = places(elf)
    with VirtualDevice(load_platform(platform)) as alone:
        expected = run_firmware(alone, elf)
    assert expected.status == 0
    with open_board(platform) as board:
        with board.openocd():  # installed? else the test is skipped
            pass
        command = f"program {{{elf}}} verify reset exit"
        done = subprocess.run(
            ["openocd", *board.options, "-c", command],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0 and "** Verified OK **" in done.stderr, done.stderr
        deadline = time.monotonic() + SECONDS
        while board.target.read_register("pc") & ~1 != end and time.monotonic() < deadline:
            time.sleep(0.05)
        assert board.device.read(status, 4) == bytes(4)
        board.device.write(status, b"\xff" * 4)
        with board.openocd() as ocd:
            ocd("reset halt")
            before = board.device.instructions
            ocd(f"bp {end} 2 hw; resume; wait_halt {1000 * SECONDS}")
            assert ocd.words(status, 1) == [0]
            assert board.device.instructions - before == expected.instructions
        rcc = board.device.board.peripherals["rcc"][1]
        assert isinstance(rcc, Rcc) and rcc.core_hz == board.device.platform.clock_hz


@pytest.mark.costly
@pytest.mark.parametrize("platform", SECTORS)
def test_gdb_loads_into_flash(platform: str) -> None:
    """GDB's load erases and programs through OpenOCD, whose memory map says what is flash."""
    elf = firmware(platform)
    with open_board(platform) as board, board.openocd("-c", "gdb_port 0") as ocd:
        port = re.search(r"Listening on port (\d+) for gdb", ocd.log)
        assert port is not None
        answers = run_gdb(
            elf, f"target extended-remote :{port[1]}", "load", "monitor reset halt",
            "break covp_exit", "continue", "print *(int *)&covp_exit_status", "kill",
        )  # fmt: skip
        assert "Transfer rate" in answers[1], answers
        assert "Breakpoint 1, " in answers[4], answers
        assert answers[5] == "$1 = 0", answers
