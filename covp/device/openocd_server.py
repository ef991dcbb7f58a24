"""Starting OpenOCD for a platform's board, and waiting until its Tcl port answers."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from covp.base.closing import Owned
from covp.chip.platform_file import Platform
from covp.device.child_process import ends_with_parent
from covp.errors import DeviceError, PlatformError

_START_SECONDS = 20.0
_LISTENING = re.compile(r"Listening on port (\d+) for tcl connections")
_TROUBLE = re.compile(r"^.*(?:rror|ould not|an't find|not found|failed).*$", re.MULTILINE)


class OpenOcdServer(Owned):
    """A running OpenOCD; a context manager that ends it.

    Args:
        platform: its key ``openocd`` names the board file and the commands.
        port: of the Tcl server; 0 picks a free one.
        configs: OpenOCD files instead of the board's.
        commands: OpenOCD commands before ``init``.
        before: OpenOCD commands before the files.

    Attributes:
        port: where the Tcl server listens, on this machine only.

    Raises:
        PlatformError: the platform names no board, and no file is given.
        DeviceError: OpenOCD is not installed, or ends with an error, which is passed on.
    """

    def __init__(
        self,
        platform: Platform,
        port: int = 0,
        configs: Sequence[str] = (),
        commands: Sequence[str] = (),
        before: Sequence[str] = (),
    ) -> None:
        self._log: IO[str] = tempfile.TemporaryFile("w+", prefix="covp-openocd-")  # noqa: SIM115
        self._process = subprocess.Popen(
            openocd_command(platform, port, configs, commands, before),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            preexec_fn=ends_with_parent(signal.SIGTERM),
        )
        try:
            self.port = self._wait_for_port()
        except BaseException:
            self.close()
            raise

    @property
    def label(self) -> str:
        """The server's name, for messages."""
        return "the OpenOCD that covp started"

    def close(self) -> None:
        """End OpenOCD; a second call does nothing."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()

    def wait(self) -> None:
        """Block until OpenOCD ends. Raises DeviceError with its output."""
        self._process.wait()
        raise DeviceError(f"OpenOCD has ended: {self._reason()}")

    @property
    def log(self) -> str:
        """All that OpenOCD has printed."""
        self._log.seek(0)
        return self._log.read()

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            ended = self._process.poll() is not None
            found = _LISTENING.search(self.log)
            # the port opens before init is over: only "init done" says that the board answered
            if found and "covp: init done" in self.log:
                return int(found[1])
            if ended:
                raise DeviceError(f"OpenOCD does not start: {self._reason()}")
            if time.monotonic() > deadline:
                raise DeviceError(
                    f"OpenOCD is not ready after {_START_SECONDS:g} s; is another one at that "
                    f"probe? {self._reason()}"
                )
            time.sleep(0.01)

    def _reason(self) -> str:
        found = _TROUBLE.findall(self.log)
        text = found[0].removeprefix("Error: ") if found else self.log[-200:]
        reason = " ".join(text.split()) or "it says nothing"
        if "open failed" in reason or "No J-Link device found" in reason:
            reason += "; no debug probe was found: is the board plugged in, may this user open it?"
        return reason


def openocd_command(
    platform: Platform,
    port: int,
    configs: Sequence[str],
    commands: Sequence[str],
    before: Sequence[str],
) -> list[str]:
    """Return the command line. Raises PlatformError or DeviceError: see `OpenOcdServer`."""
    board = platform.openocd
    if board is None and not configs:
        raise PlatformError(
            f"platform {platform.name} names no OpenOCD board file; add the key openocd.board or "
            "give a configuration file"
        )
    binary = shutil.which("openocd")
    if binary is None:
        raise DeviceError("openocd is not installed: apt install openocd")
    command = [binary, "-c", "gdb_port disabled; telnet_port disabled", "-c", f"tcl_port {port}"]
    for text in before:
        command += ["-c", text]
    for file in configs or ([board.board] if board is not None else []):
        command += ["-f", file]
    if board is not None:
        commands = [*board.commands, *commands]
    for text in commands:
        command += ["-c", text]
    command += ["-c", "init"]
    for text in board.init if board is not None else ():
        command += ["-c", text]
    return [*command, "-c", "echo {covp: init done}"]
