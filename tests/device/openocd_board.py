"""A virtual board on the real OpenOCD: its debug port, and OpenOCD connected to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import covp.device.debug
from covp.chip.platform_file import load_platform
from covp.device.debug.remote_bitbang import debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.openocd import OpenOcdDevice
from covp.device.openocd_server import OpenOcdServer
from covp.device.virtual import VirtualDevice

RISCV_CONFIG = str(Path(covp.device.debug.__file__).parent / "configs" / "riscv.cfg")


@dataclass
class Board:
    """What stands between a client and the virtual core."""

    core: VirtualDevice
    target: DebugTarget
    probe: DebugServer
    openocd: OpenOcdServer

    @property
    def address(self) -> str:
        """HOST:PORT of OpenOCD's Tcl server."""
        return f"127.0.0.1:{self.openocd.port}"

    @property
    def name(self) -> str:
        """For ``Session(device=...)``."""
        return f"openocd:{self.address}"

    def device(self) -> OpenOcdDevice:
        """A connection to it."""
        return OpenOcdDevice(self.core.platform, self.address)


@contextmanager
def virtual_board(platform: str) -> Iterator[Board]:
    """Cortex-M with its stock board file over an ST-Link, RISC-V over JTAG."""
    if shutil.which("openocd") is None:
        pytest.skip("openocd is not installed: apt install openocd")
    with VirtualDevice(load_platform(platform)) as core, DebugTarget(core) as target:
        is_arm = target.architecture == "arm"
        handler = debug_port("stlink" if is_arm else "jtag", target)
        with DebugServer(handler) as probe:
            with start_openocd(core, probe.port) as openocd:
                yield Board(core, target, probe, openocd)
            # a client that is killed breaks its connection
            assert not [e for e in probe.failures if not isinstance(e, ConnectionError)]


def start_openocd(core: VirtualDevice, probe: int, port: int = 0) -> OpenOcdServer:
    """OpenOCD at a probe's TCP port."""
    if core.platform.core.architecture == "arm":
        backend = f"hla_stlink_backend tcp {probe}"
        return OpenOcdServer(core.platform, port, commands=[backend])
    before = [f"set PORT {probe}"]
    return OpenOcdServer(core.platform, port, configs=[RISCV_CONFIG], before=before)
