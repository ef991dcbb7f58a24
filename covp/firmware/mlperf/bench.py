"""`BoardBench`: a virtual board with the wake word's firmware, and the wires to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from covp.base.closing import Owned
from covp.codegen.program import Program
from covp.device.debug.program_file import load_elf
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError
from covp.firmware.mlperf.board import serial_port
from covp.firmware.mlperf.wake_word import IO_MODELS, io_bases, io_lines
from covp.hardware.peripheral_models import load_peripheral
from covp.runtime.accelerators import attach_accelerator

OUTPUTS = ("processing", "detected", "timestamp")
"""Names of the output pins, as wake_word.h numbers them."""

SERIAL_INPUT = 8
"""Number of the input pin on the serial port's receiving line, see virtual_io.c."""

_BOOT_SECONDS = 60.0
_REST = 0.1  # seconds of virtual time after a wave
_RETRY = 0.01  # seconds between two requests to a running core


class AudioInput(Protocol):
    """Interface of `covp.peripherals.i2s_microphone` to the outside."""

    @property
    def is_playing(self) -> bool: ...

    def play(self, samples: NDArray[Any], rate: int, on_end: Callable[[], None]) -> None: ...


class PinPort(Protocol):
    """Interface of `covp.peripherals.gpio` to the outside."""

    on_change: Callable[[int, bool, int], None] | None

    def drive(self, pin: int, level: bool) -> None: ...


PinWatcher = Callable[[str, bool, int], None]


class BoardBench(Owned):
    """The board boots when it is made, and runs in a thread of its own until it is closed.

    Its time is virtual: it passes while the firmware works and while a wave is played, as fast as
    the emulator goes, and none passes while the firmware waits for a command.

    Args:
        program: the network.
        elf: the firmware with it, see `covp.firmware.mlperf.wake_word`.

    Attributes:
        device: the board.
        microphone: its audio input.
        on_line: called with every line that the firmware sends, without its end.

    Raises:
        DeviceError: the firmware does not boot.
    """

    def __init__(self, program: Program, elf: Path) -> None:
        self.device = VirtualDevice(program.platform)
        self.on_line: Callable[[str], None] = self._wait_for_boot
        self._watchers: list[PinWatcher] = []
        self._line, self._booted, self._ended = bytearray(), threading.Event(), False
        self._failure: BaseException | None = None
        for accelerator in program.accelerators:
            attach_accelerator(self.device.board, accelerator)
        units = [load_peripheral(model) for model in IO_MODELS.values()]
        places = zip(io_bases(program.platform), io_lines(program.platform), strict=True)
        for name, unit, (base, line) in zip(IO_MODELS, units, places, strict=True):
            self.device.attach(unit, base, name, line)
        self.microphone = cast(AudioInput, units[0])
        self._pins = cast(PinPort, units[1])
        self._pins.on_change = self._on_output
        self._port = serial_port(self.device)
        self._port.on_byte = self._on_byte
        entry = load_elf(self.device, elf).entry
        self.device.core.write_register("pc", entry | self.device.core.thumb)
        self._source = self.device.clock.outside()
        self._thread = threading.Thread(target=self._run, name="covp-board", daemon=True)
        self._thread.start()
        if not self._booted.wait(_BOOT_SECONDS) or self._failure is not None:
            failure = self._failure
            self.close()
            raise DeviceError(f"the firmware does not boot: {failure or 'it sends nothing'}")

    @property
    def label(self) -> str:
        """Name of the resource in errors."""
        return "the board of the bench"

    def close(self) -> None:
        """Switch the board off. A second call does nothing."""
        if self._ended:
            return
        self._ended = True
        while self._thread.is_alive():
            self.device.request_halt()
            self._thread.join(_RETRY)
        self._source.close()
        self.device.close()

    @property
    def is_running(self) -> bool:
        """True if the board has neither stopped with a fault nor been closed."""
        return self._thread.is_alive()

    @property
    def failure(self) -> BaseException | None:
        """Fault that the board stopped with; None: it did not."""
        return self._failure

    @property
    def hertz(self) -> int:
        """Clock of the board in Hz."""
        return self.device.clock.hertz

    @property
    def cycle(self) -> int:
        """The board's time in cycles; for callbacks and calls in its thread."""
        return self.device.clock.now

    # -- wires; of any thread -----------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes to the firmware, over its serial port."""

        def feed() -> None:
            self._port.feed(data)
            for level in (True, False):  # the receiving line moves: that wakes the core
                self._pins.drive(SERIAL_INPUT, level)

        self._source.post(feed)

    def play(self, samples: NDArray[Any], rate: int, on_end: Callable[[], None]) -> None:
        """Send audio, see `I2sMicrophone.play`; ``on_end`` comes after the last frame."""

        def end_later() -> None:
            self.device.clock.at(self.cycle + round(_REST * self.hertz), on_end)

        self._source.post(lambda: self.microphone.play(samples, rate, end_later))

    def watch(self, watcher: PinWatcher) -> None:
        """Call it with name, level and cycle of each output that changes, in the board's thread."""
        self._watchers.append(watcher)

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the board's thread, between two blocks of code; returns after it."""
        done = threading.Event()

        def call() -> None:
            function()
            done.set()

        self._source.post(call)
        while not done.wait(_RETRY) and self.is_running:
            pass

    # -- in the board's thread ----------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ended:
                self.device.run()
        except BaseException as error:
            self._failure = error
        self._booted.set()

    def _on_output(self, pin: int, level: bool, cycle: int) -> None:
        if pin < len(OUTPUTS):
            for watcher in self._watchers:
                watcher(OUTPUTS[pin], level, cycle)

    def _on_byte(self, byte: int) -> None:
        self._line.append(byte)
        if byte == ord("\n"):
            line, self._line = bytes(self._line), bytearray()
            self.on_line(line.decode("utf-8", errors="replace").rstrip("\r\n"))

    def _wait_for_boot(self, line: str) -> None:
        if line == "m-ready":
            self._booted.set()
