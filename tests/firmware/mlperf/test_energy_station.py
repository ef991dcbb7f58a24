"""Interface board and energy monitor around a board: what the runner sends them and gets."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Iterator

import numpy as np
import pytest

from covp.errors import UsageError
from covp.evaluation import build
from covp.firmware.mlperf.board import BenchmarkBoard
from covp.firmware.mlperf.energy_station import EnergyStation
from covp.firmware.mlperf.firmware import build_firmware

from .firmware_bench import small_network

SIZE = 12
GRAPH = small_network(SIZE)


class Port:
    """A terminal, read up to what a pattern finds."""

    def __init__(self, shown: str) -> None:
        self.file = os.open(shown.rsplit(":", 2)[0], os.O_RDWR | os.O_NOCTTY)
        self.text = ""

    def ask(self, text: str, pattern: str) -> str:
        os.write(self.file, text.encode())
        return self.until(pattern)

    def until(self, pattern: str) -> str:
        while not (match := re.search(pattern, self.text, re.S)):
            assert select.select([self.file], [], [], 30)[0], f"silence after {self.text!r}"
            self.text += os.read(self.file, 4096).decode()
        found, self.text = self.text[: match.end()], self.text[match.end() :]
        return found


@pytest.fixture
def station() -> Iterator[EnergyStation]:
    firmware = build_firmware(build(GRAPH, "cortex-m33"), "kws01", "energy")
    with EnergyStation(BenchmarkBoard(firmware)) as made:
        yield made


def through(interface: Port, command: str) -> str:
    """A command for the board, as the runner's IOManager sends it."""
    head = interface.ask(f"dut {command}%", r"m-ready\r\n")
    assert head == f"m-dut-passthrough({command})\r\nm-ready\r\n"
    return interface.until(r"\[dut\]: m-ready\r\n")


@pytest.mark.slow
def test_a_measurement(station: EnergyStation) -> None:
    """The samples between two events add up to the estimate for the inferences."""
    interface, monitor = (Port(port) for port in station.ports)
    assert "m-model-[kws01]" in through(interface, "profile")
    assert "ack htc" in monitor.ask("htc\r\n", "PowerShield > ")
    data = np.arange(SIZE, dtype=np.int8).tobytes()
    through(interface, f"db load {SIZE}")
    assert "m-load-done" in through(interface, f"db {data.hex()}")
    energy = station.board.firmware.simulated.energy
    assert energy is not None and not isinstance(energy, str)
    monitor.ask("start\r\n", r"ack start\r\nPowerShield > \r\n")
    for number, count in enumerate((3000, 5000)):
        laps = re.findall(r"m-lap-us-(\d+)", through(interface, f"infer {count} 0"))
        text = monitor.until(rf"event {2 * number + 1:02d} ris\r\n")
        samples = re.findall(r"\d{4}[-+]\d\d", text)
        values = [float(sample.replace("-", "e-").replace("+", "e+")) for sample in samples]
        assert len(values) == round((int(laps[1]) - int(laps[0])) / 1000) > 5
        assert sum(values) == pytest.approx(count * energy.joules, rel=1e-3)
    monitor.ask("stop\r\n", "Acquisition completed\r\nPowerShield > ")
    through(interface, "infer 1 0")
    assert monitor.ask("status\r\n", "PowerShield > ") == "ack status\r\nPowerShield > "
    for port in (interface, monitor):
        os.close(port.file)


@pytest.mark.costly
def test_other_commands_of_the_interface_board(station: EnergyStation) -> None:
    interface = Port(station.ports[0])
    assert "115200" in interface.ask("checkbaud%", r"m-ready\r\n")
    assert "9600" in interface.ask("setbaud 9600%", r"m-ready\r\n")
    assert "Interface Board" in interface.ask("name%", r"m-ready\r\n")
    assert interface.ask("%", r"m-ready\r\n") == "m-ready\r\n"
    assert "e-[" in through(interface, "what")
    os.close(interface.file)


def test_a_platform_without_figures_has_no_monitor() -> None:
    firmware = build_firmware(build(GRAPH, "riscv32"), "kws01", "energy")
    with (
        BenchmarkBoard(firmware) as board,
        pytest.raises(UsageError, match="riscv32 says nothing of its energy"),
    ):
        EnergyStation(board)
