"""The GDB client against the real QEMU."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

import covp
from covp.chip.platform_file import load_platform
from covp.device.qemu import QemuDevice
from covp.device.rsp_link import Damaged, Decoder, Packet, Signal, encode
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.evaluation import evaluate
from covp.graph.random_inputs import random_inputs
from covp.runtime.session import Session

QEMU = {
    "mps2-an386": "qemu-system-arm",
    "mps2-an500": "qemu-system-arm",
    "mps3-an547": "qemu-system-arm",
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
void store(void) { *(volatile int *)0x5ff00000u = 1; }
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


@pytest.fixture(params=["mps2-an386", "mps3-an547", "qemu-riscv32"])
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


@pytest.mark.costly
@pytest.mark.parametrize("platform", QEMU)
def test_kws_has_the_same_bits_as_on_the_virtual_device(platform: str) -> None:
    # kws does not fit the HiFive1's 16 KB
    graph = covp.load_model("toycar" if platform == "hifive1" else "kws")
    program = covp.compile(graph, load_platform(need(platform)))
    x = random_inputs(graph.inputs, 1)
    results = []
    for device in ("virtual", "gdb:qemu"):
        with Session(platform, device=device) as session:
            results.append(session.load(program).run(*x))
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], program.reference(x)[0])


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["mps2-an386", "mps2-an500", "mps3-an547", "qemu-riscv32"])
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
