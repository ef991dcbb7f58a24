"""A virtual JTAG port at a virtual device, and the real OpenOCD at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import covp.device.debug
from covp.chip.platform_file import load_platform
from covp.device.debug.remote_bitbang import debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice

from .openocd_bench import OpenOcd, openocd

RISCV_CONFIG = Path(covp.device.debug.__file__).parent / "configs" / "riscv.cfg"


@contextmanager
def jtag_openocd(platform: str) -> Iterator[tuple[DebugTarget, OpenOcd]]:
    """OpenOCD over remote_bitbang, with the chip's target file or the one for any RISC-V."""
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        with DebugServer(debug_port("jtag", target)) as server:
            if target.architecture == "arm":
                adapter = f"adapter driver remote_bitbang; remote_bitbang port {server.port}"
                first = f"{adapter}; remote_bitbang host 127.0.0.1; transport select jtag"
                config = f"target/stm32{'l4' if 'l4' in platform else 'f7'}x.cfg"
            else:
                first, config = f"set PORT {server.port}", str(RISCV_CONFIG)
            with openocd("-c", first, "-f", config) as ocd:
                yield target, ocd
        assert not server.failures
