"""Flash of a virtual board under the real OpenOCD: memory to load, no controller to program."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from covp.debug.ports import debug_port
from covp.debug.server import DebugServer
from covp.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.platform_file import load_platform

from .openocd_bench import openocd

FLASH = 0x08000000
BOARDS = {"stm32f746": "board/stm32f7discovery.cfg", "stm32l4r5": "board/st_nucleo_l4.cfg"}


@pytest.mark.parametrize("platform", BOARDS)
def test_flash_is_loaded_as_memory(platform: str, tmp_path: Path) -> None:
    image = tmp_path / "image.bin"
    image.write_bytes(random.Random(1).randbytes(5000))
    log: list[str] = []
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        with DebugServer(debug_port("stlink", target, log.append)) as server:
            backend = f"hla_stlink_backend tcp {server.port}"
            with openocd("-f", BOARDS[platform], "-c", backend) as ocd:
                ocd("reset halt")
                ocd(f"load_image {image} {FLASH}; verify_image {image} {FLASH}")
                assert target.read_memory(FLASH, 5000) == image.read_bytes()
                assert log == []
                for command in ("flash write_image erase", "program"):
                    assert ocd.attempt(f"{command} {image} {FLASH}")[0]
                ocd("reset halt")  # it can go on
        assert not server.failures
    assert len(log) == 1
    assert "no flash controller is modelled" in log[0] and "load_image" in log[0]
