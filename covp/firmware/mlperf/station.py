"""`WakeWordStation`: the virtual boards of an energy measurement of sww01, each on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from covp.base.closing import Closing
from covp.codegen.program import Program
from covp.firmware.mlperf.bench import BoardBench
from covp.firmware.mlperf.interface_board import InterfaceBoard
from covp.firmware.mlperf.power_monitor import PowerMonitor
from covp.firmware.mlperf.terminal import Terminal
from covp.firmware.mlperf.wake_word import NAME

INTERFACE_USB, MONITOR_USB = "0483:374e", "0483:5740"
"""Vendor and product of an STM32H573I-DK and an X-NUCLEO-LPM01A, as in devices_sww.yaml."""


class WakeWordStation(Closing):
    """A board with the streaming wake word, an interface board and an energy monitor.

    As in the official set-up the host talks to the board through the interface board.

    Args:
        program, elf: see `BoardBench`.
        card: folder of the interface board's wave files.

    Attributes:
        bench: the board.
        elf: its firmware.
        interface: path of the interface board's terminal.
        monitor: path of the energy monitor's; None where the platform has no energy figures.

    Raises:
        DeviceError: the firmware does not boot.
        UsageError: this machine has no pseudo terminal to spare.
    """

    def __init__(self, program: Program, elf: Path, card: Path) -> None:
        self.elf = elf
        self.bench = BoardBench(program, elf)
        self._terminals: list[Terminal] = []
        try:
            board = InterfaceBoard(self.bench, card, lambda text: interface.write(text.encode()))
            interface = self._terminal("%", board.execute)
            self.interface, self.monitor = interface.path, None
            energy = program.platform.energy
            if energy is not None:
                run = energy.run.value
                sleep = run if energy.sleep is None else energy.sleep.value
                meter = PowerMonitor(
                    self.bench, run, sleep, lambda text: monitor.write(text.encode())
                )
                monitor = self._terminal("\n", meter.execute)
                self.monitor = monitor.path
        except BaseException:
            self.close()
            raise

    @property
    def ports(self) -> list[str]:
        """The terminals as `covp.firmware.mlperf.official` takes them."""
        monitor = [] if self.monitor is None else [f"{self.monitor}:{MONITOR_USB}"]
        return [f"{self.interface}:{INTERFACE_USB}", *monitor]

    @property
    def benchmark_name(self) -> str:
        """Name of the benchmark that the firmware runs."""
        return NAME

    def check(self) -> None:
        """Raise what ended the firmware, if anything did: a DeviceFault, in general."""
        if self.bench.failure is not None:
            raise self.bench.failure

    def wait(self) -> None:
        """Serve until the firmware fails, which is an error; Ctrl-C ends it too.

        Raises:
            CovpError: as `check` does.
        """
        while True:
            self.check()
            time.sleep(0.1)

    def close(self) -> None:
        """Switch all off. A second call does nothing."""
        self.bench.close()
        for terminal in self._terminals:
            terminal.close()

    def _terminal(self, end: str, execute: Callable[[str], None]) -> Terminal:
        terminal = Terminal(Commands(end, execute).feed)
        self._terminals.append(terminal)
        return terminal


class Commands:
    """Bytes taken apart into commands.

    Args:
        end: of a command, e.g. "%".
        execute: called with the text of each, without its end and line breaks around it.
    """

    def __init__(self, end: str, execute: Callable[[str], None]) -> None:
        self._end, self._execute, self._text = end, execute, ""

    def feed(self, data: bytes) -> None:
        """Take more bytes, and execute the commands that they complete."""
        self._text += data.decode("utf-8", errors="replace")
        *commands, self._text = self._text.split(self._end)
        for command in commands:
            self._execute(command.strip("\r\n"))
