"""What is open when a process forks: each process is right, or refuses by name."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

import covp
from covp.base.closing import Owned
from covp.chip.platform_file import load_platform
from covp.device.debug.server import DebugServer, receive_exactly
from covp.device.gdb_remote import GdbDevice
from covp.device.host import HostDevice
from covp.device.rsp_link import connect
from covp.device.semihosting.console import Collected
from covp.device.semihosting.files import HostFiles
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, UsageError
from covp.exploration.sweep.lock import Lock
from covp.firmware.mlperf.terminal import Terminal
from covp.hardware.outside import OutsideSource
from tests.device.fake_gdb import FakeGdb

POOLS = Path(__file__).with_name("pools.py")


def in_a_fork(work: Callable[[], object]) -> str:
    """What work gives, or raises, in a forked process, which then ends as programs do."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        answer = answers.read().decode()
    os.waitpid(child, 0)
    return answer


def pools(device: str, method: str, count: int) -> list[str]:
    command = [sys.executable, str(POOLS), device, method, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.mark.costly
@pytest.mark.parametrize("method, count", [("fork", 20), ("spawn", 1), ("forkserver", 1)])
def test_pools_of_a_virtual_device_are_right(method: str, count: int) -> None:
    assert not pools("virtual", method, count)


@pytest.mark.costly
def test_pools_of_rtl_are_right() -> None:
    try:
        covp.Session("picorv32", device="rtl").close()
    except covp.CovpError as error:
        pytest.skip(str(error))
    assert not pools("rtl", "fork", 3)


def test_pools_of_this_machine_are_refused() -> None:
    refusals = pools("host", "fork", 2)
    assert len(refusals) == 40
    assert set(refusals) == {
        "pool: UsageError: device host belongs to the process that this one was forked from: "
        "each process needs its own"
    }


def test_a_fork_continues_from_the_state_of_its_parent_and_alone() -> None:
    with covp.Session("riscv32") as session:
        place = session.place(bytes(range(64)))
        snapshot = session.snapshot()

        def work() -> bytes:
            before = session.read(place.address, 64)
            session.write(place.address, bytes(64))
            after = session.read(place.address, 64)
            session.restore(snapshot)
            return before + after + session.read(place.address, 64)

        expected = bytes(range(64)) + bytes(64) + bytes(range(64))
        assert in_a_fork(work) == str(expected)
        assert session.read(place.address, 64) == bytes(range(64))


class Opened:
    """One of each kind of handle; ``use`` of it must go on in this process."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        device = stack.enter_context(VirtualDevice(load_platform("riscv32")))
        server = DebugServer(lambda client: client.sendall(receive_exactly(client, 1)))
        terminal = Terminal(lambda data: None)
        stack.callback(terminal.close)
        files = HostFiles(Collected(), folder)
        (folder / "text").write_bytes(b"text")
        file = files._open[files.open("text", 0)]
        gdb = stack.enter_context(FakeGdb())
        remote = GdbDevice.at(load_platform("stm32l4r5"), f"127.0.0.1:{gdb.port}")
        assert isinstance(file, Owned)
        self.handles: dict[str, tuple[Owned, Callable[[], object]]] = {}
        self._add(stack, HostDevice(load_platform("host")), lambda one: one.reset())
        self._add(stack, remote, lambda one: one.read_register("pc"))
        self._add(stack, server, lambda one: self._talk(one.port))
        if importlib.util.find_spec("sqlalchemy"):
            from covp.exploration.sweep.store import Store

            self._add(stack, Store(folder / "rows.db"), lambda one: one.rows())
        self._add(stack, terminal, lambda one: one.write(b"text"))
        self._add(stack, device.clock.outside(), lambda one: one.post(lambda: None))
        self._add(stack, file, lambda one: one.read(1))

    def _add(self, stack: ExitStack, handle: Owned, use: Callable[..., object]) -> None:
        stack.callback(handle.close)
        self.handles[handle.label] = handle, lambda: use(handle)

    @staticmethod
    def _talk(port: int) -> None:
        with connect("127.0.0.1", port, "test") as client:
            client.sendall(b"!")
            assert client.recv(1) == b"!"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:
        yield Opened(tmp_path, stack)


@pytest.mark.costly
def test_handles_that_a_fork_cannot_copy_refuse_by_name(opened: Opened) -> None:
    assert len(opened.handles) == 6 + (importlib.util.find_spec("sqlalchemy") is not None)
    for label, (handle, use) in opened.handles.items():
        use()
        assert in_a_fork(use) == (
            f"UsageError: {label} belongs to the process that this one was forked from: "
            "each process needs its own"
        )
        assert in_a_fork(partial(_close, handle)) == "None"
        assert in_a_fork(partial(in_a_fork, use)).startswith(f"UsageError: {label} ")
        use()  # nothing was closed here


def test_a_program_that_waits_for_input_of_its_parent_is_refused() -> None:
    with VirtualDevice(load_platform("riscv32")) as device:
        device.write(0x80000100, bytes.fromhex("73005010"))  # wfi
        source: OutsideSource = device.clock.outside()

        def wait() -> object:
            return device.execute(0x80000100, 0x80000104, timeout=60)

        assert in_a_fork(wait).startswith("UsageError: the device's input from outside belongs")
        source.close()
        with pytest.raises(DeviceFault):  # nothing wakes it
            wait()


def test_a_lock_is_given_back_though_a_fork_has_its_file(tmp_path: Path) -> None:
    first = Lock(tmp_path / "rows.db")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.read(read, 1)
        os._exit(0)
    try:
        with pytest.raises(UsageError, match=f"process {os.getpid()} is working"):
            Lock(tmp_path / "rows.db")
        first.close()
        Lock(tmp_path / "rows.db").close()
    finally:
        os.write(write, b"!")
        os.waitpid(child, 0)


def test_a_temporary_folder_stays_when_a_fork_ends() -> None:
    code = (
        "import os; from covp.base.temporary import temporary_folder;"
        "folder = temporary_folder('fork');"
        "child = os.fork(); os.waitpid(child, 0) if child else None;"
        "print(int(os.path.isdir(folder.name)), folder.name if child else '', flush=True)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    child, parent = said.stdout.splitlines()
    assert (child, parent[0]) == ("1 ", "1")
    assert not Path(parent[2:]).exists()  # at the end of the process itself


def _close(handle: Owned) -> None:
    handle.close()
