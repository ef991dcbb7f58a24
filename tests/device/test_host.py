"""The host device: bit-exact results, faults instead of crashes, and no process left over."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import UNDEFINED_BEHAVIOUR_FLAGS
from covp.device.host import HostDevice
from covp.device.virtual import VirtualDevice
from covp.errors import CovpError, DeviceError, DeviceFault, PlatformError, ToolchainError
from covp.evaluation import build, evaluate, run
from covp.runtime.module import Module
from covp.runtime.session import Session

NATIVE = sys.platform == "linux" and platform.machine() == "x86_64"
on_host = pytest.mark.skipif(not NATIVE, reason="the host device needs Linux on x86-64")
slow = pytest.mark.slow

PROGRAM = """
#include <stdint.h>

int add(int a, int b) { return a + b; }
int load(const int *address) { return *address; }
void store(int *address) { *address = 1; }
void jump(uint32_t address) { ((void (*)(void))(uintptr_t)address)(); }
void illegal(void) { __builtin_trap(); }
int divide(int a, int b) { return a / b; }
void stop(void) { __asm__ volatile("int3"); }
void halt(void) { __asm__ volatile("hlt"); }
void forever(void) { for (;;) __asm__ volatile(""); }
int deep(int n) { volatile int local[64]; local[n & 63] = n; return deep(n + 1) + local[n & 63]; }

float mixed(int64_t a, float b, int8_t c, uint64_t d, float e, int f, int g, int64_t h)
{
    return a == -(1LL << 40) && b == 1.5f && c == -2 && d == 1ULL << 63 && e == -0.25f &&
           f == 7 && g == -8 && h == (1LL << 33) + 1 ? b + e : -1;
}
int64_t wide(int64_t a, int64_t b) { return a * b; }

/* what a program can spoil: the direction flag, and rounding towards zero */
void spoil(void)
{
    uint32_t mode = 0x7f80;
    __asm__ volatile("std; ldmxcsr %0" : : "m"(mode));
}
float third(float x) { return 2 * x / 3; }
"""


@pytest.fixture
def session() -> Iterator[Session]:
    if not NATIVE:
        pytest.skip("the host device needs Linux on x86-64")
    with Session("host", device="host", timeout=20) as opened:
        yield opened


@pytest.fixture
def code(session: Session) -> Module:
    return session.load_c(PROGRAM)


def pid_of(session: Session) -> int:
    device = session.device
    assert isinstance(device, HostDevice) and device._process is not None
    return device._process.pid


def state_of(pid: int) -> str:
    """As in /proc: R runs, S waits; "" and Z are over."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_soon(pid: int, *states: str) -> bool:
    for _ in range(200):
        if state_of(pid) in states:
            return True
        time.sleep(0.05)
    return False


# -- results ------------------------------------------------------------------------------------


@pytest.mark.costly
@on_host
@pytest.mark.parametrize(
    "model",
    [
        *("toycar", "kws", "toycar_float", "kws_float"),
        *(
            pytest.param(name, marks=slow)
            for name in ("resnet", "vww", "sww", "cifar10", "resnet_float", "vww_float")
        ),
    ],
)
def test_models_give_what_the_reference_gives(model: str) -> None:
    for seed in range(3):
        result = evaluate(model, "host", device="host", seed=seed)
        assert result.matches_reference
        profile = result.profile
        assert profile.instructions is None and profile.cycles is None
        assert profile.seconds is not None and 0 < profile.seconds < result.simulation_seconds


@pytest.mark.costly
@on_host
def test_layers_one_by_one() -> None:
    assert run(build("toycar", "host"), device="host", by_layer=True).matches_reference


def test_arguments_of_all_kinds(code: Module) -> None:
    got = code["mixed"](-(1 << 40), 1.5, -2, 1 << 63, -0.25, 7, -8, (1 << 33) + 1).result()
    assert got == 1.25
    assert code["wide"](-3, 1 << 40).result() == -3 << 40


def test_a_run_starts_with_a_fresh_processor(code: Module) -> None:
    expected = float(np.float32(2) / np.float32(3))
    assert code["third"](1.0).result() == expected
    code["spoil"]()
    code.session.sync()
    assert code["third"](1.0).result() == expected


# -- faults -------------------------------------------------------------------------------------

FAULTS: list[tuple[str, tuple[int, ...], str, int | None, str]] = [
    ("load", (0,), "unmapped read", 0, "SIGSEGV"),
    ("load", (0x30800000,), "unmapped read", 0x30800000, "0 bytes past the end of ram"),
    ("load", (0xFFFFFFF0,), "unmapped read", 0xFFFFFFF0, "SIGSEGV"),
    ("store", (0x1FFFFFFC,), "unmapped write", 0x1FFFFFFC, "4 bytes below flash"),
    ("store", (0x20000000,), "write to read-only memory", 0x20000000, "flash"),
    ("jump", (0x1000,), "unmapped fetch", 0x1000, "SIGSEGV"),
    ("illegal", (), "illegal instruction", None, "SIGILL"),
    ("divide", (1, 0), "division by zero", None, "SIGFPE"),
    ("divide", (-(1 << 31), -1), "division by zero", None, "does not fit"),
    ("stop", (), "breakpoint", None, "SIGTRAP"),
    ("halt", (), "general protection", None, "privileged"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "kind", "address", "says"),
    FAULTS,
    ids=[f"{f[0]}{f[1]}" for f in FAULTS],
)
def test_a_crash_is_a_fault_and_the_next_call_works(
    code: Module,
    function: str,
    arguments: tuple[int, ...],
    kind: str,
    address: int | None,
    says: str,
) -> None:
    before = code["add"](1, 2)
    with pytest.raises(DeviceFault) as caught:
        code[function](*arguments).result()
    fault = caught.value
    assert (fault.kind, fault.address) == (kind, address)
    assert says in fault.detail and "\n" not in str(fault)
    if kind == "unmapped fetch":
        assert fault.pc == address
    else:
        name = f"{function}+0x"
        assert fault.symbol is not None and fault.symbol.startswith(name)
        line = next(i for i, t in enumerate(PROGRAM.splitlines(), 1) if f" {function}(" in t)
        assert fault.source == f"module.c:{line}"
    assert fault.registers["rip"] == fault.pc
    assert before.result() == 3, "what ran before the fault is kept"
    assert code["add"](2, 3).result() == 5


def test_a_stack_that_runs_out(code: Module) -> None:
    with pytest.raises(DeviceFault) as caught:
        code["deep"](0).result()
    fault, ram = caught.value, code.session.platform.ram
    assert fault.kind == "stack overflow" and "the stack is 32768 bytes" in fault.detail
    assert fault.address is not None and ram.start - 512 <= fault.address < ram.start
    assert fault.symbol is not None and fault.symbol.startswith("deep")
    assert code["add"](2, 3).result() == 5


def test_an_endless_loop_is_over_with_the_time(session: Session, code: Module) -> None:
    kept = session.tensor(np.arange(5, dtype=np.int32))
    session.timeout = 0.2
    with pytest.raises(DeviceFault) as caught:
        code["forever"]().result()
    fault = caught.value
    assert fault.kind == "timeout" and "0.2 seconds" in fault.detail
    assert fault.symbol is not None and fault.symbol.startswith("forever")
    session.timeout = 20
    assert code["add"](2, 3).result() == 5
    assert kept.numpy().tolist() == [0, 1, 2, 3, 4]


# -- memory -------------------------------------------------------------------------------------


@on_host
def test_memory_ends_where_the_platform_says() -> None:
    with HostDevice(load_platform("host")) as device:
        for region in device.platform.memory:
            device.write(region.end - 3, b"abc")
            assert device.read(region.end - 3, 3) == b"abc"
            assert device.read(region.start, 4) == bytes(4)
            assert device.read(region.end, 0) == b""
            for address, size in ((region.end - 3, 4), (region.start - 1, 2), (region.end, 1)):
                with pytest.raises(DeviceError, match="outside the memory map"):
                    device.read(address, size)
                with pytest.raises(DeviceError, match="outside the memory map"):
                    device.write(address, bytes(size))


@on_host
def test_memory_and_code_are_as_they_were_after_a_run(session: Session, code: Module) -> None:
    flash = session.platform.flash
    before = session.device.read(flash.start, 4096)
    assert code["add"](1, 2).result() == 3
    assert session.device.read(flash.start, 4096) == before, "a breakpoint was left"


# -- processes ----------------------------------------------------------------------------------


def test_one_process_serves_all_runs(session: Session, code: Module) -> None:
    assert code["add"](1, 2).result() == 3
    pid = pid_of(session)
    assert code["add"](2, 2).result() == 4
    assert pid_of(session) == pid


def test_a_killed_process_is_replaced(session: Session, code: Module) -> None:
    assert code["add"](1, 2).result() == 3
    pid = pid_of(session)
    os.kill(pid, signal.SIGKILL)
    assert is_soon(pid, "", "Z")
    assert code["add"](1, 2).result() == 3
    assert pid_of(session) != pid


def test_a_process_killed_while_it_runs(session: Session, code: Module) -> None:
    assert code["add"](1, 2).result() == 3
    killer = threading.Timer(0.2, os.kill, (pid_of(session), signal.SIGKILL))
    killer.start()
    with pytest.raises(DeviceError, match="ended by SIGKILL; the next run has a new one") as caught:
        code["forever"]().result()
    killer.join()
    assert not isinstance(caught.value, DeviceFault)
    assert code["add"](2, 3).result() == 5


def test_a_thread_that_ends_takes_no_run_with_it(session: Session, code: Module) -> None:
    """Linux ends a child with the thread that made it."""
    results: list[object] = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: results.append(code["add"](1, 2).result()))
        thread.start()
        thread.join()
        results.append(code["add"](1, 2).result())
    assert results == [3] * 6


@pytest.mark.parametrize("how", ["close", "drop"])
def test_no_process_and_no_file_is_left(how: str, code: Module) -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = files()
    device = HostDevice(load_platform("host"))
    enter = device.platform.flash.start
    device.write(enter, b"\x90\x90")
    device.execute(enter, enter + 1)
    assert device._process is not None and files() > before
    pid = device._process.pid
    assert state_of(pid) in "RS"
    if how == "close":
        device.close()
        device.close()
        with pytest.raises(DeviceError, match="closed"):
            device.read(enter, 1)
        with pytest.raises(DeviceError, match="closed"):
            device.execute(enter, enter + 1)
    del device
    assert state_of(pid) == "" and files() == before


@on_host
def test_the_process_ends_with_this_one_however_that_ends() -> None:
    script = (
        "import covp, sys, threading\n"
        "s = covp.Session('host', device='host')\n"
        "code = s.load_c('int one(void) { return 1; } void forever(void) { for (;;); }\\n')\n"
        "code['one']().result()\n"
        "print(s.device._process.pid, flush=True)\n"
        "code['forever']().result()\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_soon(child, "R"), "it runs the endless loop"
        parent.kill()
    assert is_soon(child, "", "Z")


@on_host
def test_ctrl_c_ends_the_run(session: Session, code: Module) -> None:
    assert code["add"](1, 2).result() == 3
    pid = pid_of(session)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        code["forever"]().result()
    timer.join()
    assert is_soon(pid, "", "Z")
    assert code["add"](2, 3).result() == 5


# -- what is refused ----------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[], object], type[CovpError], str]] = [
    (lambda: Session("host"), CovpError, "cannot run host, which is this machine"),
    (lambda: Session("host", "gdb:localhost:1"), CovpError, "use device host"),
    (lambda: Session("host", "host:1"), CovpError, "takes no address"),
    (lambda: Session("host", "host", "gcc"), ToolchainError, "use the toolchain zig"),
    (lambda: Session("riscv32", "host"), PlatformError, "rv32imc.*take the platform host"),
    (lambda: VirtualDevice(load_platform("host")), DeviceError, "use device host"),
]


@on_host
@pytest.mark.parametrize(("make", "kind", "says"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_does_not_fit_is_refused(
    make: Callable[[], object], kind: type[CovpError], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_other_machines_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(DeviceError, match=r"needs Linux on x86-64, this machine is .* on aarch64"):
        HostDevice(load_platform("host"))


@on_host
def test_an_address_that_is_taken_is_named() -> None:
    board = load_platform("host")
    ram = msgspec.structs.replace(board.memory[1], start=board.flash.end - 0x1000)
    with HostDevice(msgspec.structs.replace(board, memory=(board.memory[0], ram))) as device:
        says = "cannot be mapped: 8388608 bytes at 0x207ff000: File exists"
        with pytest.raises(DeviceError, match=says):
            device.execute(board.flash.start, board.flash.start)


@on_host
def test_memory_is_whole_pages() -> None:
    board = load_platform("host")
    ram = msgspec.structs.replace(board.memory[1], size=5 * 1024)
    with pytest.raises(PlatformError, match="multiples of 4096"):
        HostDevice(msgspec.structs.replace(board, memory=(board.memory[0], ram)))


@pytest.mark.costly
@on_host
def test_the_command_line_says_that_time_is_measured() -> None:
    run = "from covp.cli.main import main; main()"
    command = [sys.executable, "-c", run, "run", "toycar", "-p", "host", "--device", "host"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "measured " in done.stdout and "estimated" not in done.stdout
    assert "bit-exact: " in done.stdout


UNDEFINED = """
#include <stdint.h>

int32_t add(int32_t a, int32_t b)
{
    return a + b;
}
int32_t subtract(int32_t a, int32_t b) { return a - b; }
int32_t multiply(int32_t a, int32_t b) { return a * b; }
int32_t negate(int32_t a) { return -a; }
int32_t left(int32_t a, int32_t b) { return a << b; }
int32_t right(int32_t a, int32_t b) { return a >> b; }
int32_t load(uint32_t address) { return *(const int32_t *)(uintptr_t)address; }
int32_t whole(float a) { return (int32_t)a; }
int32_t quotient(int32_t a, int32_t b) { return a / b; }
static const int32_t table[4] = {1, 2, 3, 4};
int32_t element(int32_t i) { return table[i]; }
"""


@on_host
@pytest.mark.parametrize(
    ("function", "defined", "undefined", "reason"),
    [
        ("add", (2**31 - 2, 1), (2**31 - 1, 1), "addition overflows"),
        ("subtract", (-(2**31), 0), (-(2**31), 1), "subtraction overflows"),
        ("multiply", (2**15, 2**15), (2**16, 2**15), "multiplication overflows"),
        ("negate", (5,), (-(2**31),), "negation overflows"),
        ("left", (1, 30), (1, 32), "shift by a count out of range"),
        ("left", (1, 30), (1 << 30, 2), "or of a value that does not fit"),
        ("right", (-1, 31), (-1, 32), "shift by a count out of range"),
        ("load", (0x30000100,), (0x30000101,), "misaligned address"),
        ("whole", (2e9,), (3e9,), "a float that does not fit"),
        ("quotient", (7, 2), (7, 0), "division by zero"),
        ("element", (3,), (4,), "index outside the array"),
    ],
)
def test_undefined_behaviour_is_a_fault_with_reason_and_line(
    function: str, defined: tuple[float, ...], undefined: tuple[float, ...], reason: str
) -> None:
    with Session("host", device="host", timeout=20) as session:
        module = session.load_c(UNDEFINED, flags=UNDEFINED_BEHAVIOUR_FLAGS)
        module[function](*defined).result()
        call = module[function]
        with pytest.raises(DeviceFault, match=f"undefined behaviour: .*{reason}") as fault:
            call(*undefined).result()
        assert fault.value.symbol is not None
        assert fault.value.symbol.startswith(function)
        line = next(i for i, text in enumerate(UNDEFINED.split("\n"), 1) if f"{function}(" in text)
        wanted = line + 2 if function == "add" else line
        assert fault.value.source is not None
        assert fault.value.source.endswith(f":{wanted}")


@on_host
def test_a_trap_of_another_kind_is_not_called_undefined(code: Module) -> None:
    with pytest.raises(DeviceFault, match="illegal instruction") as fault:
        code["illegal"]().result()
    assert "undefined" not in str(fault.value)
