"""Firmware with a small network on an emulated core, talked to through its serial port."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from covp.chip.platform_file import load_platform
from covp.device.debug.program_file import load_elf
from covp.device.virtual import VirtualDevice
from covp.evaluation import build
from covp.firmware.mlperf.board import serial_port
from covp.firmware.mlperf.firmware import Mode, build_firmware
from covp.graph.attributes import FullyConnected
from covp.graph.graph import Graph
from covp.graph.zoo.builder import GraphBuilder

CYCLES = 200  # at most between two reads of firmware that waits; an inference takes more
QUIET = 8  # reads of an empty port after which the firmware is said to wait


def small_network(inputs: int = 12, outputs: int = 4) -> Graph:
    """One dense layer with random weights."""
    rng = np.random.default_rng(3)
    builder = GraphBuilder("dense")
    x = builder.input((1, inputs), np.int8, 0.5, 3)
    weights = builder.constant(rng.integers(-127, 128, (outputs, inputs), dtype=np.int8), 0.02)
    y = builder.add(
        "FULLY_CONNECTED", x, weights, None, attributes=FullyConnected(), scale=0.25, zero_point=-5
    )
    return builder.graph(y)


class FirmwareBench:
    """Runs the firmware until it has answered.

    Args:
        elf: the firmware; by default it is built.

    Attributes:
        boot: the lines of the start.
    """

    def __init__(
        self,
        platform: str,
        benchmark: str,
        mode: Mode = "performance",
        graph: Graph | None = None,
        elf: Path | None = None,
    ) -> None:
        if elf is None:
            made = build(graph or small_network(), platform)
            elf = build_firmware(made, benchmark, mode).elf
        self.device = VirtualDevice(load_platform(platform))
        self.port = serial_port(self.device)
        self._empty = self._latest = 0
        self.port.on_empty = self._stop_when_quiet
        self.port.on_byte = self._sent
        entry = load_elf(self.device, elf).entry
        self.device.core.write_register("pc", entry | self.device.core.thumb)
        self.boot = self.say(b"")
        self._booted = self.device.board.save_state()

    def restart(self) -> None:
        """As after the start."""
        self.device.board.load_state(self._booted)
        self._empty = 0

    def say(self, data: bytes) -> list[str]:
        """The lines that the firmware answers."""
        self.port.sent.clear()
        self.port.feed(data)
        self._empty = 0
        assert not self.device.run(), "the firmware has stopped"
        text = self.port.sent.decode("ascii")
        assert text == "" or text.endswith("\r\n")
        return text.split("\r\n")[:-1]

    def close(self) -> None:
        self.device.close()

    def _sent(self, byte: int) -> None:
        self._empty = 0

    def _stop_when_quiet(self) -> None:
        now = self.device.clock.now
        self._empty = self._empty + 1 if now - self._latest < CYCLES else 0
        self._latest = now
        if self._empty >= QUIET:
            self.device.request_halt()
