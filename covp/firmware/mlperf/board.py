"""`BenchmarkBoard`: a virtual board that the official MLPerf Tiny runner takes for a real one."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from covp.base.closing import Owned
from covp.device.debug.program_file import load_elf
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, PlatformError
from covp.firmware.mlperf.firmware import MlperfFirmware
from covp.firmware.mlperf.serial_link import Fast, Real, SerialLink
from covp.firmware.mlperf.terminal import Terminal
from covp.hardware.serial_port import SerialPort
from covp.runtime.accelerators import attach_accelerator

USB_VENDOR, USB_PRODUCT = 0x0483, 0x374B
"""USB ids of the NUCLEO-L4R5ZI, which the runner's device files name."""

PaceName = Literal["fast", "real"]
_BOOT_SECONDS = 60.0
_RETRY = 0.01  # seconds between two requests to a running core
_START, _LAP = re.compile(rb"m-infer-start-(\d+)"), re.compile(rb"m-lap-us-(\d+)")


@dataclass
class MeasuredWindows:
    """The measured windows of a board so far.

    Attributes:
        count: windows that are over.
        inferences: in them.
        microseconds: virtual time that they took.
    """

    count: int = 0
    inferences: int = 0
    microseconds: int = 0
    _open: int = 0
    _since: int | None = None

    def see(self, line: bytes) -> None:
        """Take a line of the board."""
        if match := _START.fullmatch(line):
            self._open, self._since = int(match[1]), None
        elif (match := _LAP.fullmatch(line)) and self._open:
            if self._since is None:
                self._since = int(match[1])
                return
            self.count += 1
            self.inferences += self._open
            self.microseconds += int(match[1]) - self._since
            self._open = 0


class BenchmarkBoard(Owned):
    """Firmware with a model on an emulated core, its serial port on a pseudo terminal.

    It has booted when this returns, and serves in threads of its own until it is closed. Several
    may exist at the same time::

        with BenchmarkBoard(build_firmware(build("kws", "stm32l4r5"))) as board:
            port = serial.Serial(board.path)

    Args:
        firmware: what runs.
        pace: "fast" or "real", see `covp.firmware.mlperf.serial_link`.

    Attributes:
        firmware: what runs.
        device: the board.
        path: of the pseudo terminal.
        windows: what was measured so far.
        output: gets the lines of the board; by default the terminal does.

    Raises:
        PlatformError: the platform has no serial port.
        DeviceError: the firmware did not boot.
    """

    def __init__(self, firmware: MlperfFirmware, pace: PaceName = "fast") -> None:
        self.firmware, self.windows = firmware, MeasuredWindows()
        self._ended, self._booted = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self.device = VirtualDevice(firmware.program.platform)
        try:
            self._prepare()
        except BaseException:
            self.device.close()
            raise
        self._link.pace = (
            Fast(self._ended) if pace == "fast" else Real(self.device.clock, self._ended)
        )
        self._thread = threading.Thread(target=self._run, name="covp-board", daemon=True)
        self._thread.start()
        try:
            self._wait_for_boot()
        except BaseException:
            self.close()
            raise

    @property
    def label(self) -> str:
        """Name of the resource in errors."""
        return f"the board on {self.path}"

    def _prepare(self) -> None:
        """Load the program, put accelerators on the bus, connect the port to the terminal."""
        device, firmware = self.device, self.firmware
        port = serial_port(device)
        for accelerator in firmware.program.accelerators:
            attach_accelerator(device.board, accelerator)
        entry = load_elf(device, firmware.elf).entry
        device.core.write_register("pc", entry | device.core.thumb)
        self._link = link = SerialLink(device.clock, self._send, self.windows.see)
        self._terminal = Terminal(link.receive, link.keep_alive)
        self.path = self._terminal.path
        self.output: Callable[[bytes], None] = self._terminal.write

        def refill() -> None:
            if data := link.take():
                port.feed(data)

        def sent(byte: int) -> None:
            port.sent.clear()
            link.on_byte(byte)

        port.on_byte, port.on_empty = sent, refill

    def _send(self, data: bytes) -> None:
        """Pass on output of the board, except while it boots, when no one reads."""
        if self._booted.is_set():
            self.output(data)
        elif data.startswith(b"m-ready"):
            self._booted.set()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self.device.run()
        except BaseException as error:
            self._failure = error
        self._booted.set()

    def _wait_for_boot(self) -> None:
        if not self._booted.wait(_BOOT_SECONDS):
            raise DeviceError(
                f"{self.device.platform.name}: the firmware has not booted in {_BOOT_SECONDS:g} s"
            )
        self.check()

    @property
    def ports(self) -> list[str]:
        """The terminal as the official runner is shown it."""
        return [f"{self.path}:{USB_VENDOR:04x}:{USB_PRODUCT:04x}"]

    @property
    def benchmark_name(self) -> str:
        """Name of the benchmark that the firmware runs."""
        return self.firmware.benchmark.name

    def send(self, data: bytes) -> None:
        """Send bytes to the firmware, as if a client had written them to the terminal."""
        self._link.receive(data)

    def check(self) -> None:
        """Raise what ended the firmware, if anything did: a DeviceFault, in general."""
        if self._failure is not None:
            raise self._failure

    def wait(self) -> None:
        """Serve until the firmware fails, which is an error; Ctrl-C ends it too.

        Raises:
            CovpError: as `check` does.
        """
        while True:
            self.check()
            time.sleep(0.1)

    def close(self) -> None:
        """End it and free all. A second call does nothing."""
        self._ended.set()
        self._terminal.close()
        while self._thread.is_alive():
            self.device.request_halt()
            self._thread.join(_RETRY)
        self.device.close()


def serial_port(device: VirtualDevice) -> SerialPort:
    """Return the platform file's first serial port, which board support takes.

    Raises:
        PlatformError: there is none, or covp has no board support for it.
    """
    for config in device.platform.peripherals:
        model = device.peripherals[config.name][1]
        if isinstance(model, SerialPort) and device.platform.board != "silent":
            return model
    raise PlatformError(
        f"{device.platform.name}: the benchmark's firmware needs a serial port that board "
        "support knows; add one to `peripherals`, such as {name: uart0, model: uart, base: ...}"
    )
