"""Flash of a virtual board under the real OpenOCD: its stock drivers erase, program and verify."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from covp.debug.ports import debug_port
from covp.debug.server import DebugServer
from covp.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.platform_file import load_platform

from .openocd_bench import OpenOcd, openocd

FLASH = 0x08000000
BOARDS = {
    "stm32f746": "board/stm32f7discovery.cfg",
    "nucleo-f746zg": "board/st_nucleo_f7.cfg",
    "stm32l4r5": "board/st_nucleo_l4.cfg",
}
SECTORS = {
    "stm32f746": [32, 32, 32, 32, 128, 256, 256, 256],
    "stm32l4r5": [4] * 512,
}


@contextmanager
def board(platform: str) -> Iterator[tuple[VirtualDevice, OpenOcd]]:
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        with DebugServer(debug_port("stlink", target)) as server:
            backend = f"hla_stlink_backend tcp {server.port}"
            with openocd("-f", BOARDS[platform], "-c", backend) as ocd:
                yield device, ocd
        assert not server.failures


@pytest.mark.parametrize("platform", SECTORS)
def test_the_stock_driver(platform: str, tmp_path: Path) -> None:
    """The driver's loader runs on the emulated core, from RAM."""
    data = random.Random(1).randbytes(5003)
    image = tmp_path / "image.bin"
    image.write_bytes(data)
    with board(platform) as (device, ocd):
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
