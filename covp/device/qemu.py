"""QEMU as a device: an independent implementation of the core, driven through its GDB server."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from covp.base.temporary import temporary_folder
from covp.chip.platform_file import Platform, Qemu
from covp.device.child_process import ends_with_parent
from covp.device.debugger import DEFAULT_TIMEOUT
from covp.device.gdb_remote import GdbDevice
from covp.errors import DeviceError, PlatformError

_START_SECONDS = 20.0
_PACKAGES = {"arm": "qemu-system-arm", "riscv": "qemu-system-misc"}
_BINARIES = {"arm": "qemu-system-arm", "riscv": "qemu-system-riscv32"}


class QemuDevice(GdbDevice):
    """A QEMU process of its own, which ends with the device.

    Raises:
        PlatformError: the platform names no QEMU machine.
        DeviceError: QEMU is not installed, or does not start.
    """

    def __init__(
        self, platform: Platform, timeout: float = DEFAULT_TIMEOUT, verify: bool = True
    ) -> None:
        self._folder = temporary_folder("qemu")
        self._process: subprocess.Popen[bytes] | None = None
        command = qemu_command(platform)
        self._command = [*command, "-gdb", f"unix:{self._socket_path},server=on,wait=off"]
        try:
            super().__init__(platform, self._start, f"gdb:qemu ({command[2]})", timeout, verify)
        except BaseException:
            self.close()
            raise

    @property
    def _socket_path(self) -> Path:
        return Path(self._folder.name) / "gdb"

    def close(self) -> None:
        """End QEMU; `reopen` starts it again."""
        super().close()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stderr, process.stdin):
                if stream is not None:
                    stream.close()
            self._socket_path.unlink(missing_ok=True)

    def _wait_halted(self, seconds: float) -> bool:
        try:
            return super()._wait_halted(seconds)
        except DeviceError:
            process = self._process
            if process is None or process.stderr is None:
                raise
            process.kill()
            said = process.stderr.read().decode(errors="replace")
            fatal = next((line for line in said.splitlines() if "fatal" in line), "")
            raise DeviceError(
                f"{self.transport}: QEMU has ended while the core ran: "
                f"{fatal or 'no reason given'}; open the session again"
            ) from None

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()

    def _start(self) -> socket.socket:
        """Start the process and connect to it."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=ends_with_parent(signal.SIGKILL),
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                said = self._process.stderr.read().decode(errors="replace").strip()
                reason = " ".join(said.split()) or f"status {self._process.returncode}"
                raise DeviceError(f"{self._command[0]} ended at once: {reason}")
            client = socket.socket(socket.AF_UNIX)
            try:
                client.connect(str(self._socket_path))
                return client
            except OSError:
                client.close()
            if time.monotonic() > deadline:
                raise DeviceError(f"{self._command[0]} opens no GDB server")
            time.sleep(0.005)


def qemu_command(platform: Platform) -> list[str]:
    """Return QEMU's command line for a platform, halted before the first instruction.

    Raises:
        PlatformError: the platform names no QEMU machine.
        DeviceError: QEMU is not installed.
    """
    if platform.qemu is None:
        raise PlatformError(
            f"platform {platform.name} names no QEMU machine; add the key qemu.machine, or take "
            "one that has it: covp platforms"
        )
    name, *machine = qemu_machine(platform, platform.qemu)
    binary = shutil.which(name)
    if binary is None:
        package = _PACKAGES[platform.core.architecture]
        raise DeviceError(f"{name} is not installed: apt install {package}")
    quiet = ["-display", "none", "-serial", "null", "-monitor", "none", "-S", "-nodefaults"]
    return [binary, *machine, *quiet]


def qemu_machine(platform: Platform, machine: Qemu) -> list[str]:
    """Return the program and the options that choose a platform's machine."""
    cpu = ["-cpu", machine.cpu] if machine.cpu else []
    name = _BINARIES[platform.core.architecture]
    return [name, "-M", machine.machine, *cpu, *machine.options]
