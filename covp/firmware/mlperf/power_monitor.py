"""`PowerMonitor`: the energy monitor of MLPerf Tiny's runner, with estimated energies.

It speaks the part of the protocol of ST's X-NUCLEO-LPM01A (UM2269) that the runner's
power_manager_lpm.py uses: commands end with a line break, `ack COMMAND` answers them, and between
`start` and `stop` come energies in joules, a line a millisecond, and events of the timestamp pin.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from covp.firmware.mlperf.bench import BoardBench

_SAMPLES = 1000  # a second


class PowerMonitor:
    """Samples the board's energy while a wave is played and at its timestamps.

    A sample is cycles times the platform's pJ a cycle; cycles of sleep count apart where the
    platform states their energy. While the board waits for commands no time passes, and
    there are no samples.

    Args:
        bench: the board.
        pj_run, pj_sleep: of a cycle in which the core runs, or sleeps.
        write: sends text to the host; it may block, which holds the board's time up.
    """

    def __init__(
        self, bench: BoardBench, pj_run: float, pj_sleep: float, write: Callable[[str], None]
    ) -> None:
        self._bench, self._write = bench, write
        self._run, self._sleep = pj_run * 1e-12, pj_sleep * 1e-12
        self._recording = False
        self._events = 0
        self._period = bench.hertz // _SAMPLES
        self._begin = self._cycle = self._skipped = 0
        self._joules = 0.0
        self._planned = False
        bench.watch(self._on_pin)

    def execute(self, command: str) -> None:
        """Answer a command of the host."""
        name = command.partition(" ")[0]
        if not name:
            return
        if name == "stop":
            self._bench.call(self._stop)
            self._write("\r\nsummary end\r\nAcquisition completed\r\nPowerShield > ")
            return
        self._write(f"ack {command}\r\nPowerShield > ")
        if name == "start":
            self._bench.call(self._start)

    def _start(self) -> None:
        self._write("\r\n")  # the prompt's line ends
        self._recording, self._events = True, 0
        self._begin = self._cycle = self._bench.cycle
        self._skipped, self._joules = self._bench.device.clock.skipped, 0.0

    def _stop(self) -> None:
        self._recording = False

    def _sample(self) -> None:
        """Add samples of the whole milliseconds since the latest: equal parts of their energy."""
        cycle, skipped = self._bench.cycle, self._bench.device.clock.skipped
        asleep = skipped - self._skipped
        self._joules += (cycle - self._cycle - asleep) * self._run + asleep * self._sleep
        self._cycle, self._skipped = cycle, skipped
        count = (cycle - self._begin) // self._period
        if count:
            self._write(f"{decimal(self._joules / count)}\r\n" * count)
            self._begin += count * self._period
            self._joules = 0.0

    def _tick(self) -> None:
        self._planned = False
        if self._recording:
            self._sample()
            self._plan()

    def _plan(self) -> None:
        """Schedule the next sample, while time passes by itself."""
        if self._bench.microphone.is_playing and not self._planned:
            self._planned = True
            self._bench.device.clock.at(self._begin + self._period, self._tick)

    def _on_pin(self, name: str, level: bool, cycle: int) -> None:
        """Note a change of the board's output; called in the board's thread."""
        if not self._recording:
            return
        self._sample()
        if name == "timestamp" and not level:
            self._write(f"event {self._events:02d} ris\r\n")
            self._events += 1
        self._plan()


def decimal(value: float) -> str:
    """Return a number of four digits and an exponent, as "6409-07" for 640.9e-6."""
    if value <= 0:
        return "0000-09"
    exponent = math.floor(math.log10(value)) - 3
    digits = round(value / 10.0**exponent)
    if digits == 10_000:
        digits, exponent = 1000, exponent + 1
    return f"{digits:04d}{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
