"""`EnergyStation`: the devices of an energy measurement: board, interface board and monitor."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from covp.base.closing import Closing
from covp.errors import UsageError
from covp.evaluation import Evaluation
from covp.evaluation.energy import Energy
from covp.firmware.mlperf.board import BenchmarkBoard
from covp.firmware.mlperf.power_monitor import decimal
from covp.firmware.mlperf.station import INTERFACE_USB, MONITOR_USB, Commands
from covp.firmware.mlperf.terminal import Terminal

_READY = "m-ready\r\n"
_START, _LAP = re.compile(r"m-infer-start-(\d+)"), re.compile(r"m-lap-us-(\d+)")


class EnergyMonitor:
    """An X-NUCLEO-LPM01A (UM2269) as far as the runner uses it, with estimated energies.

    Between the two timestamps of `infer` it states the estimated energy of an inference, in equal
    parts a millisecond of virtual time. The rest of the time it has no samples.

    Args:
        joules: of one inference.
        write: sends text to the host.
    """

    def __init__(self, joules: float, write: Callable[[str], None]) -> None:
        self._joules, self._write = joules, write
        self._recording = False
        self._events = 0
        self._inferences = 0
        self._since: int | None = None

    def execute(self, command: str) -> None:
        """Answer a command of the host."""
        name = command.partition(" ")[0]
        if name == "stop":
            self._recording = False
            self._write("\r\nsummary end\r\nAcquisition completed\r\nPowerShield > ")
        elif name:
            self._write(f"ack {command}\r\nPowerShield > ")
        if name == "start":
            self._write("\r\n")  # the prompt's line ends
            self._recording, self._events = True, 0

    def see(self, line: str) -> bool:
        """Take a line of the board; return whether it made the monitor say something."""
        if match := _START.fullmatch(line):
            self._inferences, self._since = int(match[1]), None
        elif self._inferences and (match := _LAP.fullmatch(line)):
            self._timestamp(int(match[1]))
            return self._recording
        return False

    def _timestamp(self, microseconds: int) -> None:
        """Note that the board's timestamp pin has moved."""
        last, self._since = self._since, microseconds
        if last is not None:
            count = max(1, round((microseconds - last) / 1000))
            sample = decimal(self._joules * self._inferences / count)
            self._inferences = 0
            if self._recording:
                self._write(f"{sample}\r\n" * count)
        if self._recording:
            self._write(f"event {self._events:02d} ris\r\n")
            self._events += 1


class EnergyStation(Closing):
    """A board whose commands come through an interface board, and a monitor of its energy.

    So the official runner wants it in energy mode.

    Args:
        board: with firmware in the mode "energy"; the station closes it.

    Attributes:
        board: as given.

    Raises:
        UsageError: covp cannot estimate the energy of an inference.
    """

    def __init__(self, board: BenchmarkBoard) -> None:
        self.board = board
        self._line = ""
        joules = inference_energy(board.firmware.simulated)
        self._interface = Terminal(Commands("%", self._execute).feed)
        self._meter = EnergyMonitor(joules, lambda text: self._monitor.write(text.encode()))
        self._monitor = Terminal(Commands("\n", self._meter.execute).feed)
        board.output = self._pass_back

    def _execute(self, command: str) -> None:
        """Execute a command of the host to the interface board."""
        name, _, argument = command.partition(" ")
        if name == "dut":
            self._say(f"m-dut-passthrough({argument})\r\n{_READY}")
            self.board.send(f"{argument}%".encode())
        elif name == "setbaud":
            self._say(f"set baud to: {argument}\r\n{_READY}")
        elif name == "checkbaud":
            self._say(f"baud is: 115200\r\n{_READY}")
        elif name == "name":
            self._say(f"tinyML Enhanced Interface Board (virtual)\r\n{_READY}")
        else:
            self._say(_READY)

    def _say(self, text: str) -> None:
        self._interface.write(text.encode())

    def _pass_back(self, data: bytes) -> None:
        """Pass on what the board sends, line by line, in its thread."""
        line = data.decode("ascii", errors="replace").strip()
        if line:
            if self._meter.see(line):
                self._monitor.drain()  # the runner looks at it when the board is ready
            self._say(f"[dut]: {line}\r\n")

    @property
    def ports(self) -> list[str]:
        """The terminals as `covp.firmware.mlperf.official` takes them."""
        return [f"{self._interface.path}:{INTERFACE_USB}", f"{self._monitor.path}:{MONITOR_USB}"]

    @property
    def benchmark_name(self) -> str:
        """Name of the benchmark that the firmware runs."""
        return self.board.benchmark_name

    def check(self) -> None:
        """Raise what ended the firmware, if anything did: a DeviceFault, in general."""
        self.board.check()

    def wait(self) -> None:
        """Serve until the firmware fails, which is an error; Ctrl-C ends it too."""
        while True:
            self.check()
            time.sleep(0.1)

    def close(self) -> None:
        """End it and free all. A second call does nothing."""
        self.board.close()
        self._interface.close()
        self._monitor.close()


def inference_energy(simulated: Evaluation) -> float:
    """Return an inference's estimated energy in joules. Raises UsageError without one."""
    energy = simulated.energy
    if isinstance(energy, Energy):
        return energy.joules
    name = simulated.program.platform.name
    reason = energy or f"{name} says nothing of its energy; add `energy` to the platform file"
    raise UsageError(f"no energy monitor: {reason}")
