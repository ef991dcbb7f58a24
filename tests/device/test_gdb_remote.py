"""The GDB client against the real QEMU, and against servers that misbehave."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import covp
from covp.device.gdb_remote import GdbDevice
from covp.device.qemu import QemuDevice
from covp.device.rsp import Damaged, Decoder, Packet, Signal, encode
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.evaluation import evaluate, random_inputs
from covp.platform_file import load_platform
from covp.runtime.session import Session

QEMU = {
    "mps2-an386": "qemu-system-arm",
    "mps2-an500": "qemu-system-arm",
    "qemu-riscv32": "qemu-system-riscv32",
    "hifive1": "qemu-system-riscv32",
}
MODELS = ("toycar", "kws", "resnet", "vww", "sww")
C = """
#include <stdint.h>
int32_t add(int32_t a, int32_t b) { return a + b; }
float scale(float x, float y) { return x * y; }
int64_t wide(int32_t a, int64_t b) { return a + b; }
void fill(int32_t *p, int32_t n) { for (int32_t i = 0; i < n; i++) p[i] = i * i; }
void spin(void) { for (;;) __asm__ volatile(""); }
#ifdef __arm__
void store(void) { *(volatile int *)0x60000000u = 1; }
void illegal(void) { __asm__ volatile(".short 0xde00"); }
#else
void store(void) { *(volatile int *)0xe0000000u = 1; }
void illegal(void) { __asm__ volatile(".word 0"); }
#endif
"""


def need(platform: str) -> str:
    if shutil.which(QEMU[platform]) is None:
        pytest.skip(f"{QEMU[platform]} is not installed")
    return platform


@pytest.fixture(params=["mps2-an386", "qemu-riscv32"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Session(need(request.param), device="gdb:qemu", timeout=30) as opened:
        yield opened


def test_calls(session: Session) -> None:
    module = session.load_c(C)
    assert module["add"](-3, 4).result() == 1
    assert module["scale"](1.5, 3.0).result() == 4.5
    assert module["wide"](-1, 1 << 40).result() == (1 << 40) - 1
    tensor = session.tensor(np.zeros(1000, np.int32))
    module["fill"](tensor, 1000)
    np.testing.assert_array_equal(tensor.numpy(), np.arange(1000, dtype=np.int32) ** 2)


@pytest.mark.parametrize("size", [1, 3, 4, 2047, 2048, 4099, 1 << 20])
def test_memory(session: Session, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    start = session.platform.ram.start + (1 << 20) + size % 4
    session.device.write(start, data)
    assert session.device.read(start, size) == data
    with pytest.raises(DeviceError, match="outside the memory map"):
        session.device.read(session.platform.ram.end - 1, 2)


def test_bytes_that_need_escapes(session: Session) -> None:
    data = b"#$}*+-\x03" * 50 + bytes(range(256))
    session.device.write(session.platform.ram.start + 4096, data)
    assert session.device.read(session.platform.ram.start + 4096, len(data)) == data


def test_faults_name_the_place_and_leave_a_usable_device(session: Session) -> None:
    module = session.load_c(C)
    for name, kind in (("store", "unmapped"), ("illegal", "illegal instruction")):
        with pytest.raises(DeviceFault, match=kind) as caught:
            module[name]()
            session.sync()
        assert name in (caught.value.symbol or "") and "module.c" in (caught.value.source or "")
        assert module["add"](1, 2).result() == 3


def test_an_endless_loop_ends_with_the_time(session: Session) -> None:
    module = session.load_c(C)
    session.timeout = 0.5
    with pytest.raises(DeviceFault, match=r"timeout.*spin.*0\.5 seconds \(gdb"):
        module["spin"]()
        session.sync()
    assert module["add"](1, 2).result() == 3


@pytest.mark.parametrize("platform", QEMU)
def test_kws_has_the_same_bits_as_on_the_virtual_device(platform: str) -> None:
    # kws does not fit the HiFive1's 16 KB
    graph = covp.load_model("toycar" if platform == "hifive1" else "kws")
    program = covp.compile(graph, load_platform(need(platform)))
    x = random_inputs(graph, 1)
    results = []
    for device in ("virtual", "gdb:qemu"):
        with Session(platform, device=device) as session:
            results.append(session.load(program).run(*x))
    assert program.reference is not None
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], program.reference(x)[0])


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["mps2-an386", "mps2-an500", "qemu-riscv32"])
@pytest.mark.parametrize("model", [*MODELS, "kws_float", "toycar_float"])
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_every_model(platform: str, model: str, toolchain: str) -> None:
    result = evaluate(model, need(platform), device="gdb:qemu", toolchain=toolchain)
    assert result.matches_reference and result.profile.instructions is None


def test_two_at_once_and_closing_one() -> None:
    with (
        Session(need("mps2-an386"), device="gdb:qemu") as first,
        Session(need("qemu-riscv32"), device="gdb:qemu") as second,
    ):
        adds = [session.load_c(C)["add"] for session in (first, second)]
        assert [add(1, n).result() for n, add in enumerate(adds)] == [1, 2]
        first.close()
        assert adds[1](5, 6).result() == 11


def test_a_device_can_be_opened_again() -> None:
    device = QemuDevice(load_platform(need("mps2-an386")))
    device._process.kill()  # type: ignore[union-attr]
    with pytest.raises(DeviceError, match=r"gdb:qemu.*reading 4 bytes"):
        device.read(0x20000000, 4)
    device.reopen()
    device.write(0x20000000, b"abcd")
    assert device.read(0x20000000, 4) == b"abcd"
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.read(0x20000000, 4)


def test_platforms_without_a_machine_are_refused() -> None:
    with pytest.raises(PlatformError, match=r"stm32f746 names no QEMU machine.*qemu\.machine"):
        Session("stm32f746", device="gdb:qemu")
    with pytest.raises(DeviceError, match="HOST:PORT"):
        Session("stm32f746", device="gdb:nonsense")


# -- servers that misbehave ---------------------------------------------------------------------

SCRIPT = {
    b"qSupported": b"PacketSize=400",
    b"?": b"S05",
    b"g": b"00" * 4 * 16 + b"00" * 4 * 9 + b"00000001",
    b"p": b"00000000",
    b"P": b"OK",
    b"Z": b"OK",
    b"z": b"OK",
    b"qRcmd": b"OK",
    b"M": b"OK",
    b"m": b"00000000",
}


@contextmanager
def fake_server(misbehave: Callable[[socket.socket, bytes], bool]) -> Iterator[int]:
    """A server that answers by `SCRIPT`, unless ``misbehave`` says that it dealt with a packet."""
    listener = socket.create_server(("127.0.0.1", 0))
    ending = threading.Event()

    def serve() -> None:
        while not ending.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            decoder = Decoder()
            with client:
                client.settimeout(20)
                while data := _receive(client):
                    for item in decoder.feed(data):
                        if not isinstance(item, Packet):
                            continue
                        client.sendall(b"+")
                        if misbehave(client, item.data):
                            continue
                        found = [v for k, v in SCRIPT.items() if item.data.startswith(k)]
                        client.sendall(encode(found[0] if found else b""))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    ending.set()
    listener.close()


def _receive(client: socket.socket) -> bytes:
    try:
        return client.recv(4096)
    except OSError:
        return b""


def dies(client: socket.socket, data: bytes) -> bool:
    if data.startswith(b"m"):
        client.shutdown(socket.SHUT_RDWR)
        return True
    return False


def cuts(client: socket.socket, data: bytes) -> bool:
    if data.startswith(b"m"):
        client.sendall(b"$0000")
        client.shutdown(socket.SHUT_WR)
        return True
    return False


def babbles(client: socket.socket, data: bytes) -> bool:
    if data.startswith(b"m"):
        client.sendall(b"$00#zz" * 5)
        return True
    return False


def is_short(client: socket.socket, data: bytes) -> bool:
    if data.startswith(b"m"):
        client.sendall(encode(b"00"))
        return True
    return False


def refuses(client: socket.socket, data: bytes) -> bool:
    if data.startswith(b"m"):
        client.sendall(encode(b"E01"))
        return True
    return False


@pytest.mark.parametrize(
    ("misbehave", "says"),
    [
        (dies, "connection was closed during reading 4 bytes at 0x20000000"),
        (cuts, "connection was closed during reading 4 bytes"),
        (babbles, "damaged answers during reading 4 bytes"),
        (is_short, "reading 4 bytes at 0x20000000 failed"),
        (refuses, "reading 4 bytes at 0x20000000 failed"),
    ],
)
def test_what_a_server_may_do_wrong(
    misbehave: Callable[[socket.socket, bytes], bool], says: str
) -> None:
    with fake_server(misbehave) as port:
        device = GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{port}")
        with pytest.raises(DeviceError, match=rf"gdb:127\.0\.0\.1:{port}: .*{says}"):
            device.read(0x20000000, 4)
        device.reopen()
        device.close()


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GdbDevice._ask, "__defaults__", ("", 0.3))
    with fake_server(lambda client, data: data.startswith(b"m")) as port:
        device = GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{port}")
        start = time.monotonic()
        with pytest.raises(DeviceError, match=r"no answer to reading 4 bytes.* within 0\.3 s"):
            device.read(0x20000000, 4)
        assert time.monotonic() - start < 5
        device.close()


def test_written_memory_that_holds_something_else() -> None:
    with fake_server(lambda client, data: False) as port:
        device = GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{port}")
        with pytest.raises(DeviceError, match=r"verify failed.*0x20000001 holds 0x00, not 0x01"):
            device.write(0x20000000, b"\0\1\2\3")
        device.close()


def test_a_breakpoint_that_is_never_reached() -> None:
    """The target halts somewhere else, by itself."""

    def halts(client: socket.socket, data: bytes) -> bool:
        if data == b"c":
            client.sendall(encode(b"T05"))
            return True
        return False

    with fake_server(halts) as port:
        device = GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{port}")
        with pytest.raises(DeviceFault, match=r"unexpected halt, pc 0x00000000: .*0x08000010"):
            device.execute(0x08000000, 0x08000010)
        device.close()


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(DeviceError, match=rf"gdb:127\.0\.0\.1:{port}: cannot connect"):
        GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{port}")


# -- framing ------------------------------------------------------------------------------------


def test_framing() -> None:
    decoder = Decoder()
    text = b"a}#$*b\x03"
    packet = encode(text)
    assert packet == b"$a}]}\x03}\x04}\x0ab\x03#" + b"%02x" % (sum(packet[1:-3]) & 0xFF)
    items = [item for byte in b"+" + packet for item in decoder.feed(bytes([byte]))]
    assert items == [Signal("+"), Packet(text)]
    # GDB's manual: "0* " is 0000
    assert decoder.feed(b"$0* #7a") == [Packet(b"0000")]
    assert isinstance(decoder.feed(b"$00#00")[0], Damaged)
    assert isinstance(decoder.feed(b"$*!#4b")[0], Damaged)
    assert decoder.feed(b"noise\x03$OK#9a") == [Signal("\x03"), Packet(b"OK")]
