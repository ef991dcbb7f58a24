"""QEMU killed and stopped under the GDB client."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from covp.chip.platform_file import load_platform
from covp.device.gdb_remote import GdbDevice
from covp.device.qemu import QemuDevice
from covp.errors import DeviceError
from covp.runtime.session import Session

from .failing import NO_HANG, failing
from .test_gdb_remote import C, need

RAM = 0x20000000
LIMIT = 0.4  # seconds, in place of the usual ones


@pytest.fixture
def qemu() -> Iterator[QemuDevice]:
    device = QemuDevice(load_platform(need("mps2-an386")))
    yield device
    device.close()


@contextmanager
def soon(device: QemuDevice, *signals: signal.Signals) -> Iterator[None]:
    """The process gets the signals while the block waits for it."""
    process = device._process
    assert process is not None

    def send() -> None:
        for number in signals:
            os.kill(process.pid, number)

    thread = threading.Timer(0.3, send)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("size", [4, 1 << 16])
def test_killed_in_a_read(qemu: QemuDevice, size: int) -> None:
    assert qemu._process is not None
    os.kill(qemu._process.pid, signal.SIGSTOP)
    with failing(qemu.transport, r"reading \d+ bytes at 0x20000000"), soon(qemu, signal.SIGKILL):
        qemu.read(RAM, size)
    qemu.reopen()
    qemu.write(RAM, b"abcd")
    assert qemu.read(RAM, 4) == b"abcd"


def test_one_that_hangs(qemu: QemuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    assert qemu._process is not None
    monkeypatch.setattr(GdbDevice._ask, "__defaults__", ("", LIMIT))
    os.kill(qemu._process.pid, signal.SIGSTOP)
    with failing(qemu.transport, r"no answer to reading 4 bytes at 0x20000000 within 0\.4 s"):
        qemu.read(RAM, 4)
    monkeypatch.undo()
    qemu.reopen()
    assert qemu.read(RAM, 4) == bytes(4)


def test_killed_while_the_core_runs() -> None:
    platform = need("mps2-an386")
    with Session(platform, device="gdb:qemu", timeout=NO_HANG) as session:
        assert isinstance(session.device, QemuDevice)
        module = session.load_c(C)
        says = "QEMU has ended while the core ran.*open the session again"
        with failing(session.device.transport, says), soon(session.device, signal.SIGKILL):
            module["spin"]()
            session.sync()
    with Session(platform, device="gdb:qemu", timeout=NO_HANG) as session:
        assert session.load_c(C)["add"](3, 4).result() == 7


def test_a_closed_device_says_so(qemu: QemuDevice) -> None:
    qemu.close()
    with pytest.raises(DeviceError, match="closed"):
        qemu.read(RAM, 4)
