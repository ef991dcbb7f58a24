"""The virtual ST-LINK under the real OpenOCD with stock configuration files."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.device.debug.cortex_m import CortexMDebug
from covp.device.debug.server import DebugServer
from covp.device.debug.stlink import StLink
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError

from .openocd_bench import OpenOcd, openocd
from .sum_program import Program, places, sum_program

RAM, FLASH = 0x20000000, 0x08000000
CODE, DATA, RESULT = places(RAM)


@dataclass
class Port:
    """A virtual ST-LINK at a virtual device."""

    target: DebugTarget
    server: DebugServer
    events: list[str] = field(default_factory=list)

    @property
    def hla(self) -> tuple[str, ...]:
        boards = {
            "stm32f746": "board/stm32f7discovery.cfg",
            "stm32l4r5": "board/st_nucleo_l4.cfg",
        }
        board = boards[self.target.device.platform.name]
        return ("-f", board, "-c", f"hla_stlink_backend tcp {self.server.port}")


@contextmanager
def open_port(platform: str) -> Iterator[Port]:
    events: list[str] = []
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        with DebugServer(StLink(CortexMDebug(target, events.append)).serve) as server:
            yield Port(target, server, events)
        assert not server.failures


@pytest.fixture(scope="module")
def f7() -> Iterator[tuple[Port, OpenOcd]]:
    """The board file of the STM32F7 discovery kit."""
    with open_port("stm32f746") as port, openocd(*port.hla) as ocd:
        yield port, ocd


@pytest.fixture
def halted(f7: tuple[Port, OpenOcd]) -> OpenOcd:
    f7[1]("halt; rbp all")
    return f7[1]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return sum_program("stm32f746", tmp_path_factory.mktemp("stlink"))


def test_it_is_taken_for_the_board(f7: tuple[Port, OpenOcd], halted: OpenOcd) -> None:
    assert "Cortex-M7 r0p1 processor detected" in halted.log
    assert "target has 8 breakpoints, 4 watchpoints" in halted.log
    assert "Target voltage: 3.300000" in halted.log
    assert not [line for line in halted.log.splitlines() if line.startswith("Error")]
    assert "UNEXPECTED" not in halted.log
    assert halted("stm32f7x.cpu curstate") == "halted"


def test_memory_in_all_widths(f7: tuple[Port, OpenOcd], halted: OpenOcd) -> None:
    device = f7[0].target.device
    halted(f"write_memory {RAM + 0x100} 32 {{0x11223344 0x55667788}}")
    halted(f"write_memory {RAM + 0x101} 8 {{0xAA 0xBB}}")
    halted(f"write_memory {RAM + 0x106} 16 {{0xCCDD}}")
    assert device.read(RAM + 0x100, 8).hex() == "44aabb118877ddcc"
    assert halted(f"read_memory {RAM + 0x101} 8 3") == "0xaa 0xbb 0x11"
    assert halted(f"read_memory {RAM + 0x102} 16 2") == "0x11bb 0x7788"
    assert halted(f"mdw {RAM + 0x100:#x} 2") == "0x20000100: 11bbaa44 ccdd7788"


@pytest.mark.parametrize("start, size", [(RAM + 0x1000, 65536), (RAM + 0x1003, 4097), (FLASH, 513)])
def test_images(
    f7: tuple[Port, OpenOcd], halted: OpenOcd, tmp_path: Path, start: int, size: int
) -> None:
    given, taken = tmp_path / "given", tmp_path / "taken"
    content = random.Random(size).randbytes(size)
    given.write_bytes(content)
    if start == FLASH:
        f7[0].target.write_memory(start, content)
    else:
        assert f"{size} bytes written" in halted(f"load_image {given} {start}")
    halted(f"dump_image {taken} {start} {size}")
    assert taken.read_bytes() == content == f7[0].target.read_memory(start, size)


def test_an_access_to_nothing_fails_and_the_next_one_works(halted: OpenOcd) -> None:
    assert halted.attempt("read_memory 0x70000000 32 1")[0]
    assert halted.attempt("write_memory 0x70000000 32 {1}")[0]
    assert halted.attempt(f"read_memory {RAM + 0x50000 - 4} 32 2")[0]  # half of it is there
    assert halted.words(RAM + 0x50000 - 4, 1)


def test_every_core_register(f7: tuple[Port, OpenOcd], halted: OpenOcd) -> None:
    target = f7[0].target
    names = [*(f"r{n}" for n in range(13)), "lr", "msp", "psp", *(f"s{n}" for n in range(32))]
    for number, name in enumerate(names):
        target.write_register(name, 0x1000 * number + 0x40000004)
    target.write_register("xpsr", 0x81000000)
    target.write_register("primask", 1)
    target.write_register("basepri", 0x40)
    target.write_register("control", 2)
    target.write_register("fpscr", 0x10000000)
    halted(f"mwh {CODE} 0xE7FE; resume {CODE}; halt")  # b .; they are read when the core halts
    for name in [name for name in names if name[0] != "s"]:
        assert halted.register(name) == target.read_register(name), name
    for number in range(16):
        low, high = (target.read_register(f"s{2 * number + half}") for half in (0, 1))
        assert halted.register(f"d{number}") == high << 32 | low
    assert halted.register("pc") == CODE
    assert halted.register("sp") == target.read_register("psp")
    special = {name: halted.register(name) for name in ("primask", "basepri", "control", "fpscr")}
    assert special == {"primask": 1, "basepri": 0x40, "control": 2, "fpscr": 0x10000000}
    values = {"r5": 0xDEADBEEF, "sp": RAM + 0x800, "basepri": 0x80, "primask": 0, "control": 0}
    for name, value in values.items():
        halted(f"set_reg {{{name} {value}}}")
    halted("step")  # writes them back
    assert target.read_register("r5") == 0xDEADBEEF
    assert target.read_register("basepri") == 0x80
    assert target.read_register("control") == 0
    halted("set_reg {basepri 0}")


def test_load_run_and_read_the_result(
    f7: tuple[Port, OpenOcd], halted: OpenOcd, program: Program
) -> None:
    labels = program.labels
    program.load(halted)
    halted(f"verify_image {program.image} {CODE}")  # its checksum is made on the core
    for cycle in range(50):
        data = [(cycle * 7919 + 31 * word) & 0xFFFFFFFF for word in range(4096)]
        halted(f"write_memory {DATA} 32 {{{' '.join(map(str, data))}}}")
        halted(f"bp {labels['done']} 2 {'hw' if cycle % 2 else ''}")
        program.run(halted, "start", r1=len(data))
        halted("wait_halt 5000")
        assert halted.register("pc") == labels["done"]
        assert halted.words(RESULT, 1) == [sum(data) & 0xFFFFFFFF]
        assert halted.words(DATA, 1024) == data[:1024]
        halted(f"rbp {labels['done']}")
    assert not f7[0].server.failures


@pytest.mark.parametrize("kind", ["hw", ""])
def test_a_breakpoint_in_a_loop_and_steps(halted: OpenOcd, program: Program, kind: str) -> None:
    labels = program.labels
    program.load(halted)
    halted(f"mww {DATA} 1 8; bp {labels['loop']} 2 {kind}")
    halted(f"bp {labels['done']} 2 hw")
    program.run(halted, "start", r1=4)
    for round_ in range(4):
        halted("wait_halt 2000")
        assert halted.register("pc") == labels["loop"]
        assert halted.register("r1") == 4 - round_
        halted("step")
        assert halted.register("pc") == labels["loop"] + 2
        assert halted.register("r4") == 1
        halted("resume")
    halted("wait_halt 2000")  # at the end, however busy the machine is
    assert halted.register("r2") == 4


@pytest.mark.parametrize("access", ["w", "r", "a"])
def test_a_watchpoint_halts_after_the_access(
    halted: OpenOcd, program: Program, access: str
) -> None:
    labels = program.labels
    where = DATA + 8 if access == "r" else RESULT
    program.load(halted)
    halted(f"mww {DATA} 5 8; mww {RESULT} 0; wp {where} 4 {access}")
    program.run(halted, "start", r1=4)
    halted("wait_halt 2000")
    assert halted.register("pc") == (labels["loop"] if access == "r" else labels["store"]) + 2
    assert halted.words(RESULT, 1) == [0 if access == "r" else 20]
    halted(f"rwp {where}")


def test_a_running_core_is_seen_and_halted(halted: OpenOcd, program: Program) -> None:
    labels = program.labels
    program.load(halted)
    halted(f"mww {RESULT} 0 2")
    program.run(halted, "forever", r3=RESULT)
    assert halted("stm32f7x.cpu curstate") == "running"
    counts = [halted.words(RESULT + 4, 1)[0] for _ in range(20)]  # while it runs
    assert counts == sorted(counts)
    assert halted.attempt("wait_halt 50")[0]
    halted("halt")
    assert labels["forever"] <= halted.register("pc") < labels["bad"]
    stopped = halted.words(RESULT + 4, 1)[0]
    assert stopped > counts[0]
    assert halted.words(RESULT + 4, 1) == [stopped]


def test_a_fault_halts_and_the_fault_registers_tell(
    f7: tuple[Port, OpenOcd], halted: OpenOcd, program: Program
) -> None:
    labels = program.labels
    program.load(halted)
    program.run(halted, "bad")
    halted("wait_halt 2000")
    assert halted.register("pc") == labels["bad"] + 8
    cfsr, hfsr = halted.words(0xE000ED28, 2)
    assert cfsr == 0x8200 and hfsr == 1 << 30
    assert halted.words(0xE000ED38, 1) == [0x70000000]
    assert "unmapped read at address 0x70000000" in f7[0].events[-1]


def test_a_bkpt_in_the_program(halted: OpenOcd, program: Program) -> None:
    labels = program.labels
    program.load(halted)
    program.run(halted, "soft")
    halted("wait_halt 2000")
    assert halted.register("pc") == labels["soft"] + 2


@pytest.fixture
def in_flash(f7: tuple[Port, OpenOcd]) -> int:
    """A vector table in flash; the handler counts at RESULT."""
    code = struct.pack("<2I", RAM + 0x1000, FLASH + 9) + bytes.fromhex("fee7")  # b .
    f7[0].target.write_memory(FLASH, code)
    return FLASH + 8


def test_resets(f7: tuple[Port, OpenOcd], halted: OpenOcd, in_flash: int) -> None:
    halted(f"mww {RESULT} 0x600D")
    halted("reset halt")
    assert halted.register("pc") == in_flash
    assert halted.register("msp") == RAM + 0x1000
    assert halted.words(RESULT, 1) == [0x600D]
    halted("reset run")
    assert halted("poll; poll; stm32f7x.cpu curstate").endswith("running")
    halted("halt")
    assert halted.register("pc") == in_flash
    halted("set_reg {pc 0x20000000}; reset_config none; reset halt")  # by AIRCR
    assert halted.register("pc") == in_flash
    halted("reset_config srst_only")


def test_another_board(program: Program) -> None:
    with open_port("stm32l4r5") as port, openocd(*port.hla) as ocd:
        assert "Cortex-M4 r0p1 processor detected" in ocd.log
        assert "target has 6 breakpoints, 4 watchpoints" in ocd.log
        ocd("halt")
        program.load(ocd)
        ocd(f"mww {DATA} 3 8; bp {program.labels['done']} 2")
        program.run(ocd, "start", r1=8)
        ocd("wait_halt 2000")
        assert ocd.words(RESULT, 1) == [24]
        # hardware breakpoints of this revision reach the code region only, by halves of words
        port.target.write_memory(FLASH, bytes.fromhex("00bf00bf00bffee7"))
        for address in (FLASH + 4, FLASH + 2):
            ocd(f"bp {address} 2 hw; resume {FLASH}; wait_halt 2000")
            assert ocd.register("pc") == address
            ocd(f"rbp {address}")


HLA_TARGET = (
    "transport select hla_swd; swj_newdap x cpu -expected-id {id:#x}; "
    "dap create x.dap -chain-position x.cpu; target create x.cpu cortex_m -dap x.dap"
)


@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m33"])
def test_cores_without_a_board(core: str) -> None:
    loop = bytes.fromhex("0130fde7")  # adds r0, #1; b .-2
    with open_port(core) as port:
        names = ("-f", "interface/stlink.cfg", "-f", "target/swj-dp.tcl")
        backend = f"hla_stlink_backend tcp {port.server.port}"
        identity = {"cortex-m0plus": 0x0BC11477, "cortex-m33": 0x0BE12477}[core]
        chain = HLA_TARGET.format(id=identity)
        with openocd(*names, "-c", backend, "-c", chain) as ocd:
            assert "UNEXPECTED" not in ocd.log
            ram = port.target.device.platform.ram.start
            port.target.write_memory(ram, loop)
            ocd("halt")
            ocd(f"bp {ram + 2:#x} 2")
            for name, value in {"r0": 7, "xPSR": 0x01000000}.items():
                ocd(f"set_reg {{{name} {value}}}")
            ocd(f"resume {ram}")
            ocd("wait_halt 2000")
            assert ocd.register("pc") == ram + 2 and ocd.register("r0") == 8
            ocd(f"wp {ram + 0x100} 4 w; rwp {ram + 0x100}")


# -- the protocol, without OpenOCD ------------------------------------------------------------


@pytest.fixture(scope="module")
def bare() -> Iterator[Port]:
    with open_port_for_garbage() as port:
        yield port


@contextmanager
def open_port_for_garbage() -> Iterator[Port]:
    with VirtualDevice(load_platform("stm32l4r5")) as device, DebugTarget(device) as target:
        with DebugServer(StLink(CortexMDebug(target)).serve) as server:
            yield Port(target, server)
        assert not [name for name in server.failures if not isinstance(name, ConnectionError)]


def usb(client: socket.socket, command: bytes, size: int, data: bytes | None = None) -> bytes:
    """A USB command; its data."""
    way = 1 if data is None else 0
    header = struct.pack("<B3xI16sB3xI", 5, 1, command, way, size)
    client.sendall(header + (data or b""))
    answer = b""
    wanted = 4 + (size if data is None else 0)
    while len(answer) < wanted:
        piece = client.recv(wanted - len(answer))
        assert piece
        answer += piece
    assert answer[:4] == b"\1\0\0\0"
    return answer[4:]


def is_alive(port: Port) -> bool:
    with socket.create_connection(("127.0.0.1", port.server.port), timeout=20) as client:
        mode = usb(client, b"\xf5", 2)
        core = usb(client, b"\xf2\x36" + struct.pack("<I", 0xE000ED00), 8)
        return len(mode) == 2 and core == struct.pack("<2I", 0x80, 0x410FC241)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=64),
            st.builds(
                lambda kind, sub, rest, way, size: struct.pack(
                    "<B7x16sB3xI", 5, bytes([kind, sub]) + rest, way, size
                ),
                st.sampled_from([0xF1, 0xF2, 0xF5, 0xF7]),
                st.integers(0, 0x60),
                st.binary(min_size=14, max_size=14),
                st.integers(0, 3),
                st.integers(0, 64),
            ),
        ),
        max_size=8,
    )
)
def test_garbage_ends_a_connection_at_most(bare: Port, pieces: list[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", bare.server.port), timeout=20) as client:
        try:
            client.sendall(b"".join(pieces))
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except OSError:
            pass  # it was hung up on
    assert is_alive(bare)


def test_one_byte_at_a_time(bare: Port) -> None:
    command = struct.pack("<B7x16sB3xI", 5, b"\xf2\x07" + struct.pack("<IH", FLASH, 64), 1, 64)
    with socket.create_connection(("127.0.0.1", bare.server.port), timeout=20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in command:
            client.sendall(bytes([byte]))
        answer = b""
        while len(answer) < 68:
            answer += client.recv(68)
        assert answer[4:] == bare.target.read_memory(FLASH, 64)


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    with open_port_for_garbage() as port:
        client = socket.create_connection(("127.0.0.1", port.server.port), timeout=20)
        assert usb(client, b"\xf5", 2)
    client.close()
    assert set(threading.enumerate()) <= before


def test_another_core_is_refused() -> None:
    with (
        VirtualDevice(load_platform("riscv32")) as device,
        DebugTarget(device) as target,
        pytest.raises(DeviceError, match="no Cortex-M debug registers"),
    ):
        CortexMDebug(target)
