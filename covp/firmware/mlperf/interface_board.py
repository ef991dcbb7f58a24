"""`InterfaceBoard`: what MLPerf Tiny puts between host and board for the streaming wake word.

The commands and their replies are those of mlcommons/tiny, benchmark/interface (InterfaceMenu.cpp,
DeviceUnderTest.cpp), as the runner's io_manager_enhanced.py sends and reads them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue

from covp.errors import AcceleratorError
from covp.firmware.mlperf.bench import BoardBench
from covp.hardware.waves import read_wave

READY = "m-ready\r\n"
_TICKS = 100_000  # of the board's timer a second
_DETECTIONS, _FRAMES = 10_000, 100  # that it can record
_DEBOUNCE_MS = 10
_SILENCE = 0.5  # seconds of host time after which a reply of the board is given up


class InterfaceBoard:
    """Plays waves to a board over I2S, watches its pins, and passes commands on to it.

    Times are the board's own, virtual; they are 0 when `record_detections` comes.

    Args:
        bench: the board and what is connected to it.
        card: folder with the wave files, the "SD card".
        write: sends text to the host.
    """

    def __init__(self, bench: BoardBench, card: Path, write: Callable[[str], None]) -> None:
        self._bench, self._card, self._write = bench, card, write
        self._lines: Queue[str] = Queue()
        self._start = 0
        self._detections: list[int] = []
        self._rising: list[int] = []
        self._falling: list[int] = []
        bench.on_line = self._lines.put
        bench.watch(self._on_pin)

    def execute(self, command: str) -> None:
        """Do what the host asks; returns when the reply is written."""
        name, _, argument = command.partition(" ")
        reply = {
            "dut": self._pass_on,
            "name": self._name,
            "ls": self._list,
            "play": self._play,
            "setbaud": self._set_baud,
            "checkbaud": self._check_baud,
            "record_detections": self._record,
            "print_detections": self._print_detections,
            "print_dutycycle": self._print_duty_cycle,
        }.get(name, self._unknown)
        reply(argument)

    @property
    def detections(self) -> list[float]:
        """Seconds of the recorded detections after the first, which marks the begin."""
        return [(time - self._detections[0]) / 1000 for time in self._detections[1:]]

    def _on_pin(self, name: str, level: bool, cycle: int) -> None:
        """Note a change of the board's output; called in the simulation's thread."""
        ticks = (cycle - self._start) * _TICKS // self._bench.hertz
        if name == "detected" and not level:
            milliseconds = ticks * 1000 // _TICKS
            recent = self._detections and milliseconds <= self._detections[-1] + _DEBOUNCE_MS
            if not recent and len(self._detections) < _DETECTIONS:
                self._detections.append(milliseconds)
        elif name == "processing":
            edges = self._rising if level else self._falling
            if len(edges) < _FRAMES:
                edges.append(ticks)

    # -- commands -----------------------------------------------------------------------------

    def _unknown(self, argument: str) -> None:
        self._write(READY)

    def _name(self, argument: str) -> None:
        self._write(f"tinyML Enhanced Interface Board (virtual)\r\n{READY}")

    def _list(self, argument: str) -> None:
        names = sorted(path.name for path in self._card.iterdir() if path.is_file())
        self._write("".join(f"{name}\r\n" for name in names) + READY)

    def _set_baud(self, argument: str) -> None:
        self._write(f"set baud to: {argument}\n{READY}")

    def _check_baud(self, argument: str) -> None:
        self._write(f"baud is: 115200\n{READY}")

    def _pass_on(self, argument: str) -> None:
        self._write(f"m-dut-passthrough({argument})\r\n{READY}")
        while not self._lines.empty():
            self._lines.get_nowait()
        self._bench.send(f"{argument}%".encode())
        line = ""
        while line != "m-ready":
            try:
                line = self._lines.get(timeout=_SILENCE)
            except Empty:
                if not self._bench.is_running:
                    return  # the host finds out by the silence
                continue
            self._write(f"[dut]: {line}\r\n")

    def _play(self, argument: str) -> None:
        self._write(f"Attempting to play {argument}\n")
        try:
            samples, rate = read_wave(self._card / Path(argument).name)
            if samples.ndim != 2:
                raise AcceleratorError(f"{argument}: one channel")
        except AcceleratorError:
            self._write(
                "Error playing file. Check that the file exists and is a 2-channel wav file.\n"
            )
        else:
            ended = threading.Event()
            self._bench.play(samples, rate, ended.set)
            while not ended.wait(_SILENCE):
                if not self._bench.is_running:
                    return
            self._write("succeeded.\n")
        self._write(READY)

    def _record(self, argument: str) -> None:
        def begin() -> None:
            self._start = self._bench.cycle
            for edges in (self._detections, self._rising, self._falling):
                edges.clear()

        self._bench.call(begin)
        self._write(f"Now recording detections\r\n{READY}")

    def _print_detections(self, argument: str) -> None:
        times = "".join(f"{time},\r\n" for time in self._detections)
        self._write(f"Detection Timestamps (ms)\r\n{times}{READY}")

    def _print_duty_cycle(self, argument: str) -> None:
        text = ""
        for what, times in (("start", self._rising), ("stop", self._falling)):
            lines = [times[i : i + 8] for i in range(0, len(times), 8)] or [[]]
            text += f"Duty cycle {what} times (s)\r\n"
            text += "".join("".join(f"{time}, " for time in line) + "\r\n" for line in lines)
        self._write(f"{text}{READY}")
