"""Semihosting on the virtual device: as in QEMU, and as the specification says."""

from __future__ import annotations

import errno
import io
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.debug.program_file import run_firmware
from covp.device.debug.target import DebugTarget, HaltReason
from covp.device.semihosting import Collected, Semihosting, Streams
from covp.device.semihosting.abi import Operation
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, ProgramExit
from covp.runtime.standalone import link_standalone
from tests.conftest import Loaded

PROGRAM = Path(__file__).with_name("semihosting.c")
QEMU = {"mps2-an386": "qemu-system-arm", "qemu-riscv32": "qemu-system-riscv32"}
CONFIG = "enable=on,target=native,chardev=c,arg=firmware.elf,arg=one,arg=two"


def qemu(platform: str, elf: Path, folder: Path, typed: bytes) -> tuple[int, bytes, bytes]:
    """Status, output and errors of the program on QEMU."""
    if shutil.which(QEMU[platform]) is None:
        pytest.skip(f"{QEMU[platform]} is not installed")
    machine = load_platform(platform).qemu
    assert machine is not None
    # not stdio, which would take the input that the program reads
    console = "-chardev file,id=c,path=/dev/stdout"
    quiet = f"-display none -serial null -monitor none -nodefaults {console}"
    done = subprocess.run(
        [QEMU[platform], "-M", machine.machine, *machine.options, *quiet.split(),
         "-semihosting-config", CONFIG, "-kernel", str(elf)],
        input=typed, capture_output=True, cwd=folder, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", sorted(QEMU))
def test_every_call_answers_as_in_qemu(platform: str, toolchain: str, tmp_path: Path) -> None:
    chosen = load_platform(platform)
    if toolchain == "gcc" and shutil.which(f"{chosen.core.gcc_prefix}gcc") is None:
        pytest.skip("GCC is not installed")
    strict = ("-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    compiler = get_toolchain(toolchain, chosen.core)
    elf = link_standalone(compiler, chosen, [SourceText.read(PROGRAM)], strict)
    here, there = tmp_path / "covp", tmp_path / "qemu"
    for folder in (here, there):
        folder.mkdir()
    console = Collected(b"typed\n")
    host = Semihosting(console, here, "firmware.elf one two", heap=range(1 << 29, 1 << 30))
    with VirtualDevice(chosen) as device:
        device.board.set_semihosting(host)
        ended = run_firmware(device, elf)
    status, output, errors = qemu(platform, elf, there, b"typed\n")
    assert output.count(b"=") > 40
    assert console.output == output and ended.status == status == 42
    assert console.errors == b"wrong\n" and errors.endswith(b"wrong\n")
    # QEMU 7.2 opens mode "a" without O_APPEND; C's fopen appends
    made = bytes(n * 7 & 0xFF for n in range(300)) + b"tail"
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {"kept.bin": made}


class Machine:
    """Calls made by hand, their blocks in the RAM of a device."""

    def __init__(self, device: VirtualDevice, host: Semihosting) -> None:
        device.board.set_semihosting(host)
        self.device, self.host, self.at = device, host, device.platform.ram.start + 0x2000

    def __call__(self, operation: Operation, *words: int | bytes) -> int | None:
        """Bytes become a pointer and, as the next word, their number."""
        block: list[int] = []
        place = self.at + 0x100
        for word in words:
            if isinstance(word, bytes):
                self.device.write(place, word + b"\0")
                block.append(place)
                place += len(word) + 1
            else:
                block.append(word)
        self.device.write(self.at, struct.pack(f"<{len(block)}I", *block))
        return self.host.call(operation, self.at)

    def open(self, name: bytes, mode: int) -> int | None:
        return self(Operation.OPEN, name, mode, len(name))

    @property
    def errno(self) -> int | None:
        return self.host.call(Operation.ERRNO, 0)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    folder = tmp_path / "folder"
    folder.mkdir()
    with VirtualDevice(load_platform("cortex-m33")) as device:
        yield Machine(device, Semihosting(folder=folder))


FAILED = 0xFFFFFFFF


def test_no_name_leads_out_of_the_folder(machine: Machine, tmp_path: Path) -> None:
    folder = machine.host.folder
    assert folder is not None
    secret = tmp_path / "secret"
    secret.write_text("no")
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "fifo")
    (folder / "inner").mkdir()
    names = [b"../secret", str(secret).encode(), b"link", b"up/secret", b"inner/../../secret",
             b"up/new", b"fifo", b"inner", b"", b"/dev/zero", b"../folder2/x"]  # fmt: skip
    for name in names:
        for mode in range(12):
            assert machine.open(name, mode) == FAILED, (name, mode)
            assert machine.errno == errno.EACCES
        assert machine(Operation.REMOVE, name, len(name)) == FAILED
        assert machine(Operation.RENAME, name, len(name), b"mine", 4) == FAILED
    assert machine.open(b"circle", 4) == FAILED and machine.errno == errno.ELOOP
    assert machine.open(b"long/" * 800, 4) == FAILED  # of the host's file system
    (folder / "mine").write_text("kept")
    assert machine(Operation.RENAME, b"mine", 4, b"../taken", 8) == FAILED
    assert secret.read_text() == "no" and sorted(p.name for p in tmp_path.iterdir()) == [
        "folder", "secret",
    ]  # fmt: skip
    assert machine.open(b"inner/file", 4) == 1  # folders in it are the program's
    assert machine.open(str(folder / "mine").encode(), 0) == 2


def test_without_a_folder_there_are_no_files(machine: Machine) -> None:
    bare = Machine(machine.device, Semihosting())
    assert bare.open(b"mine", 4) == FAILED and bare.errno == errno.EACCES
    assert bare.open(b":tt", 4) == 1
    assert bare(Operation.TMPNAM, machine.at + 0x200, 1, 64) == FAILED


def test_wrong_calls(machine: Machine) -> None:
    assert machine.host.call(0x12, machine.at) == FAILED  # SYSTEM
    assert machine.errno == errno.ENOSYS
    assert machine.open(b":tt", 12) == FAILED and machine.errno == errno.EINVAL
    assert machine.open(b"a\0b", 4) == FAILED and machine.errno == errno.EINVAL
    assert machine(Operation.OPEN, machine.at, 0, 5000) == FAILED
    assert machine.errno == errno.ENAMETOOLONG
    assert machine(Operation.WRITE, 9, machine.at, 4) == 4 and machine.errno == errno.EBADF
    out = machine.open(b":tt", 4)
    assert out is not None
    assert machine(Operation.READ, out, machine.at, 4) == FAILED
    assert machine(Operation.SEEK, out, 0) == FAILED and machine.errno == errno.ESPIPE
    handles = [machine.open(b":tt", 0) for _ in range(70)]
    assert handles.count(FAILED) == 7 and machine.errno == errno.EMFILE
    for operation in (Operation.WRITE, Operation.READ):
        with pytest.raises(DeviceFault, match=r"unmapped read.*semihosting"):
            machine(operation, out, 0x70000000, 4)
    with pytest.raises(DeviceFault, match="unmapped"):
        machine.host.call(Operation.WRITE0, 0x70000000)


PLACES = st.integers(0, 0x300).map(lambda offset: 0x20002000 + offset)
WORDS = st.one_of(st.integers(0, 20), PLACES, st.integers(0, 2**32 - 1))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    operation=st.one_of(st.sampled_from(list(Operation)), st.integers(0, 2**32 - 1)),
    words=st.lists(WORDS, min_size=4, max_size=4),
    memory=st.binary(max_size=64),
)
def test_nothing_a_program_does_gets_further(
    machine: Machine, operation: int, words: list[int], memory: bytes
) -> None:
    """A call is answered, is a fault of the program or its end; files are made in its folder."""
    device, host = machine.device, machine.host
    assert device.platform.ram.start == 0x20000000 and host.folder is not None
    outside = sorted(host.folder.parent.iterdir())
    device.write(0x20002000, memory + b":tt\0file\0")
    device.write(machine.at, struct.pack("<4I", *words))
    for parameter in (machine.at, words[0]):
        try:
            answer = host.call(operation, parameter)
            assert answer is not None and 0 <= answer < 2**32
        except (DeviceFault, ProgramExit) as end:
            assert "\n" not in str(end)
    assert sorted(host.folder.parent.iterdir()) == outside


CALLS = {
    "cortex-m4": """
start:
    movs r0, #0x31
    movs r1, #0
    bkpt #0xab
    mov r4, r0
    movs r0, #0x30
    ldr r1, =0x20000100
    bkpt #0xab
    movs r5, #200
loop:
    subs r5, #1
    bne loop
    movs r0, #0x30
    ldr r1, =0x20000108
    bkpt #0xab
end:
    movs r0, #7
    movs r1, #0
    bkpt #0xab
    mov r6, r0
    movs r0, #0x18
    ldr r1, =0x20024
    bkpt #0xab
soft:
    bkpt #1
bad:
    movs r0, #4
    ldr r1, =0x70000000
wrong:
    bkpt #0xab
    .ltorg
""",
    "riscv32": """
.macro call
    slli x0, x0, 0x1f
    ebreak
    srai x0, x0, 7
.endm
.option norvc
start:
    li a0, 0x31
    call
    mv s0, a0
    li a0, 0x30
    li a1, 0x20000100
    call
    li a5, 200
loop:
    addi a5, a5, -1
    bnez a5, loop
    li a0, 0x30
    li a1, 0x20000108
    call
end:
    li a0, 7
    li a1, 0
    call
    mv s1, a0
    li a0, 0x18
    li a1, 0x20024
    call
soft:
    ebreak
bad:
    li a0, 4
    li a1, 0x70000000
    slli x0, x0, 0x1f
wrong:
    ebreak
    srai x0, x0, 7
""",
}
CALLS["cortex-m0plus"] = CALLS["cortex-m4"]
FREQUENCY = {"cortex-m4": "r4", "cortex-m0plus": "r4", "riscv32": "s0"}
TYPED = {"cortex-m4": "r6", "cortex-m0plus": "r6", "riscv32": "s1"}


@pytest.fixture(params=sorted(CALLS))
def calls(request: pytest.FixtureRequest, program: Callable[..., Loaded]) -> Loaded:
    return program(request.param, CALLS[request.param].replace("0x200001", _ram(request.param)))


def _ram(platform: str) -> str:
    return f"{load_platform(platform).ram.start + 0x2000 >> 8:#x}"


def test_time_is_virtual_and_a_call_is_one_instruction(calls: Loaded) -> None:
    device, name = calls.device, calls.device.platform.name
    device.board.set_semihosting(Semihosting(epoch=1000.0))
    start = device.cycles
    first = calls.run()
    assert device.core.read_register(FREQUENCY[name]) == device.platform.clock_hz
    place = int(_ram(name), 0) << 8
    before, after = struct.unpack("<2Q", device.read(place, 16))
    assert 0 < before < after < device.cycles - start
    # the loop's 400 instructions, and what lies between the two calls
    assert after - before > 400
    again = calls.run()
    assert (again.instructions, again.cycles) == (first.instructions, first.cycles)
    # 3 instructions of each call on RISC-V, 1 on Arm, and those between
    arm, riscv = 3 + 1 + 3 + 1 + 400 + 3, 4 + 1 + 5 + 1 + 400 + 5
    assert first.instructions is not None
    assert (
        0 <= first.instructions - (riscv if name == "riscv32" else arm) <= 2
    )  # li of an address takes one or two


def test_off_it_is_a_breakpoint_and_other_breakpoints_stay(calls: Loaded) -> None:
    with pytest.raises(DeviceFault, match="breakpoint"):
        calls.run()
    calls.device.board.set_semihosting(Semihosting())
    with pytest.raises(DeviceFault, match="breakpoint") as caught:
        calls.run("soft", "bad")
    assert caught.value.pc == calls.labels["soft"] & ~1
    with pytest.raises(DeviceFault, match="unmapped read at address 0x70000000") as caught:
        calls.run("bad")
    assert caught.value.pc == calls.labels["wrong"] & ~1
    calls.device.board.set_semihosting(None)
    with pytest.raises(DeviceFault, match="breakpoint"):
        calls.run()


def test_exit_gives_status_reason_and_place(calls: Loaded) -> None:
    calls.device.board.set_semihosting(Semihosting(Collected(b"x")))
    with pytest.raises(ProgramExit, match=r"status 1 \(internal error\) at pc 0x") as caught:
        calls.run("end", "soft")
    assert calls.device.core.read_register(TYPED[calls.device.platform.name]) == ord("x")
    assert caught.value.pc is not None and calls.labels["end"] & ~1 < caught.value.pc


def test_a_core_that_waits_for_input_can_be_halted(calls: Loaded) -> None:
    device = calls.device
    out, into = os.pipe()
    with (
        open(out, "rb") as typed,
        open(into, "wb", buffering=0) as keys,
        DebugTarget(device) as target,
    ):
        device.board.set_semihosting(Semihosting(Streams(typed, io.BytesIO(), io.BytesIO())))
        target.write_register("pc", calls.labels["end"] & ~1)
        target.resume()
        assert not target.wait(0.2)
        target.halt()
        assert _reason(target) is HaltReason.REQUEST
        at = target.read_register("pc") & ~1
        target.resume()
        keys.write(b"q\n")
        assert target.wait(20) and _reason(target) is HaltReason.EXIT
        assert target.read_register(TYPED[device.platform.name]) == ord("q")
        assert at < target.read_register("pc") & ~1 < calls.labels["soft"] & ~1
        assert target.exit is not None and target.exit.status == 1


def _reason(target: DebugTarget) -> HaltReason:
    return target.reason
