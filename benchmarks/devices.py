"""What each kind of device costs: calls, transfers, and kws with the host among its layers.

    python benchmarks/devices.py

One row per kind: the virtual device, this machine, QEMU over GDB's protocol, and OpenOCD over a
virtual ST-Link, which is a process of its own (`covp debugport`). "call" is a call of a small
function with its result, the median of some; "read" and "write" move 256 KB of RAM, without the
reading back that devices add where they check what they wrote. kws is hosted: its layers are
queued and run together (lazy), or each is run and waited for (strict); the best of three, inputs
and outputs included. Kinds that this machine does not have are left out by name. After it, the
instruction counts of QEMU and of the virtual device (qemu_counts.py).
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
from qemu_counts import print_counts

import covp
from covp.chip.platform_file import load_platform
from covp.device.debugger import DebuggerDevice
from covp.device.openocd_server import OpenOcdServer
from covp.errors import CovpError
from covp.graph.random_inputs import random_inputs
from covp.runtime.session import Session

CALLS = 30
TRANSFER = 1 << 18
ROUNDS = 3
ADD = "int add(int a, int b) { return a + b; }\n"


@contextmanager
def openocd() -> Iterator[str]:
    """OpenOCD at a virtual ST-Link."""
    command = "from covp.cli.main import main; main()"
    board = subprocess.Popen(
        [sys.executable, "-c", command, "debugport", "-p", "stm32f746", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert board.stdout is not None
        probe = board.stdout.readline().split(";")[0].rpartition(":")[2]
        backend = f"hla_stlink_backend tcp {probe}"
        with OpenOcdServer(load_platform("stm32f746"), commands=[backend]) as server:
            yield f"openocd:127.0.0.1:{server.port}"
    finally:
        board.send_signal(signal.SIGINT)
        board.wait()


# what it is, its platform, and how to have it
KINDS: tuple[tuple[str, str, Callable[[], AbstractContextManager[str]]], ...] = (
    ("virtual", "stm32f746", lambda: nullcontext("virtual")),
    ("host", "host", lambda: nullcontext("host")),
    ("gdb:qemu", "mps2-an500", lambda: nullcontext("gdb:qemu")),
    ("openocd", "stm32f746", openocd),
)


def seconds(work: Callable[[], object]) -> float:
    """Of wall-clock time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(platform: str, device: str) -> list[float]:
    """Milliseconds a call, MB/s of reading and of writing, seconds of kws lazy and strict."""
    with Session(platform, device=device) as session:
        add = session.load_c(ADD)["add"]
        add(1, 2).result()
        call = statistics.median(seconds(lambda: add(1, 2).result()) for _ in range(CALLS))
        if isinstance(session.device, DebuggerDevice):
            session.device.verify = False
        data = np.random.default_rng(0).bytes(TRANSFER)
        start = session.platform.ram.end - TRANSFER
        write = min(seconds(lambda: session.device.write(start, data)) for _ in range(ROUNDS))
        read = min(seconds(lambda: session.device.read(start, TRANSFER)) for _ in range(ROUNDS))
    megabytes = TRANSFER / 1e6
    runs = [kws(platform, device, strict) for strict in (False, True)]
    return [1000 * call, megabytes / read, megabytes / write, *runs]


def kws(platform: str, device: str, strict: bool) -> float:
    """Seconds of an inference with hosted layers."""
    graph = covp.load_model("kws")
    program = covp.compile(graph, load_platform(platform))
    inputs = random_inputs(graph.inputs, 1)
    with Session(platform, device=device, strict=strict) as session:
        module = session.load(program, hosted=True)
        return min(seconds(lambda: module.run(*inputs)) for _ in range(ROUNDS))


def main() -> int:
    """Measure and print; 1 where an instruction count differs from QEMU's."""
    print(f"{'device':<10}{'platform':<13}", end="")
    print(f"{'call ms':>9}{'read MB/s':>11}{'write MB/s':>12}{'kws lazy s':>12}{'strict s':>10}")
    for name, platform, device in KINDS:
        print(f"{name:<10}{platform:<13}", end="")
        try:
            with device() as address:
                call, read, write, lazy, strict = measure(platform, address)
        except CovpError as error:
            print(f"  left out: {error}")
            continue
        print(f"{call:>9.2f}{read:>11.1f}{write:>12.1f}{lazy:>12.3f}{strict:>10.3f}")
    print()
    try:
        return 0 if print_counts() else 1
    except CovpError as error:
        print(f"instruction counts left out: {error}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
