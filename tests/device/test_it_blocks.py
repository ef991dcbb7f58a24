"""Conditional accesses in IT blocks: their state must not reach the code that follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import covp
import covp.device.machine.counter as counter
from covp.device.machine.watchpoints import Watch
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.peripherals.uart import Uart
from covp.runtime.session import Session
from tests.conftest import Loaded

PAGE = 1024
SOURCE = """
#include <stdint.h>

/* Every instruction counts: a skipped one changes the result. */
__attribute__((noinline)) uint32_t follow(uint32_t x)
{
    __asm__ volatile("add %0, #1\\n add %0, #2\\n add %0, #4\\n add %0, #8\\n add %0, #16\\n"
                     : "+r"(x));
    return x;
}

/* Each access is the first to its page, in every position of an IT block. */
uint32_t touch(uint32_t first, uint32_t pages)
{
    uint32_t total = 0;
    for (uint32_t page = first; pages--; page += 1024) {
        uint32_t value = 7, address = page;
        __asm__ volatile("cmp %1, #0\\n"
                         "itete ne\\n"
                         "movne r12, #3\\n"
                         "moveq r12, #5\\n"
                         "ldrne %0, [%1]\\n"
                         "moveq %0, #9\\n"
                         : "+r"(value) : "r"(address) : "r12", "cc", "memory");
        total = follow(total + value);
        __asm__ volatile("cmp %1, #0\\n"
                         "ittt ne\\n"
                         "strne %0, [%1]\\n"
                         "addne %0, #1\\n"
                         "strne %0, [%1, #512]\\n"
                         : "+r"(value) : "r"(page + 64 * 1024) : "cc", "memory");
        total = follow(total + value);
    }
    return total;
}
"""


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m7", "cortex-m33"])
@pytest.mark.parametrize("inlining", [True, False])
@pytest.mark.parametrize("counts", [True, False])
def test_a_first_access_to_a_page_in_an_it_block(
    platform: str, inlining: bool, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = 40
    monkeypatch.setattr(counter, "INLINING", inlining)
    with Session(platform) as session:
        if counts:
            assert session.device.abilities.traffic is not None
            session.device.abilities.traffic.count_traffic()
        module = session.load_c(SOURCE)
        first = session.platform.ram.start + 64 * 1024
        # the pages hold zeros; each round adds 0 + 31, then 1 + 31
        assert module["touch"](first, pages).result() == pages * (31 + 1 + 31)


ECHO = """
#include <stdint.h>

/* Answers bytes that are there with the next one; returns what was read. */
uint32_t echo(volatile uint32_t *uart, uint32_t polls)
{
    uint32_t read = 0, value, next;
    while (polls--)
        __asm__ volatile("ldr %1, [%3, #8]\\n"
                         "lsls %1, %1, #30\\n"
                         "ittte mi\\n"
                         "ldrmi %1, [%3, #4]\\n"
                         "addmi %2, %1, #1\\n"
                         "strmi %2, [%3]\\n"
                         "movpl %1, #0\\n"
                         "add %0, %0, %1\\n"
                         : "+r"(read), "=&r"(value), "=&r"(next) : "r"(uart) : "cc", "memory");
    return read;
}
"""


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m33"])
@pytest.mark.parametrize("inlining", [True, False])
def test_accesses_to_peripherals_in_an_it_block(
    platform: str, inlining: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is made once and with its value, though the emulator does not stop at it."""
    monkeypatch.setattr(counter, "INLINING", inlining)
    with VirtualDevice(covp.load_platform(platform)) as device:
        uart = Uart()
        device.attach(uart, 0x4C00_0000, "echo")
        with Session(device.platform, device=device) as session:
            module = session.load_c(ECHO)
            for text in (b"", b"a", b"hello, world"):
                uart.feed(text)
                read = module["echo"](0x4C00_0000, len(text) + 3).result()
                assert read == sum(text)
                assert uart.sent[-len(text) :] == bytes(byte + 1 for byte in text)


class Log(Peripheral):
    """Notes each access; its time matters, so that the emulator gives it up and comes back."""

    registers = RegisterMap(Register("VALUE", 0, on_write="note", on_read="note_read"))

    def __init__(self) -> None:
        self.log: list[int] = []
        super().__init__()

    def note(self, value: int) -> None:
        self.log.append(value)

    def note_read(self) -> None:
        self.log.append(-1)
        self.values["VALUE"] = 7


@pytest.mark.parametrize("inlining", [True, False])
@pytest.mark.parametrize(
    ("block", "log", "r5"),
    [
        ("it ne\n strne r4, [r7]", [9], 0),
        ("it eq\n streq r4, [r7]", [], 0),
        ("it ne\n ldrne r5, [r7]", [-1], 7),
        ("itee ne\n strne r4, [r7]\n moveq r5, #1\n moveq r5, #2", [9], 0),
        ("itet eq\n moveq r5, #2\n strne r4, [r7]\n streq r4, [r7]", [9], 0),
        ("itttt ne\n strne r4, [r7]\n ldrne r5, [r7]\n addne r5, #1\n strne.w r5, [r7]",
         [9, -1, 8], 8),
        ("ittt ne\n ldrne r5, [r7]\n pushne {r5}\n popne {r4}\n str r4, [r7]", [-1, 7], 7),
    ],
)  # fmt: skip
def test_an_access_of_a_peripheral_in_an_it_block(
    program: Callable[..., Loaded],
    block: str,
    log: list[int],
    r5: int,
    inlining: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is neither lost nor done twice, and what follows is executed; again in a loop."""
    monkeypatch.setattr(counter, "INLINING", inlining)
    loaded = program(
        "cortex-m4",
        f"start: ldr sp, =0x20001000\n ldr r7, =0x60000000\n movs r6, #2\nloop: movs r4, #9\n"
        f" movs r5, #0\n movs r1, #1\n cmp r1, #0\n {block}\n adds r3, r5, #1\n"
        " subs r6, #1\n bne loop\nend: b end\n.ltorg",
    )
    device = Log()
    loaded.device.attach(device, 0x60000000, "log")
    loaded.run()
    assert device.log == log * 2
    assert loaded.device.core.read_register("r5") == r5
    assert loaded.device.core.read_register("r3") == r5 + 1


@pytest.mark.parametrize("inlining", [True, False])
@pytest.mark.parametrize("access", ["ldreq r0, [r4]", "streq r0, [r4]"])
def test_a_program_after_a_fault_in_an_it_block(
    program: Callable[..., Loaded],
    access: str,
    inlining: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts outside of one: no instruction of it is skipped."""
    monkeypatch.setattr(counter, "INLINING", inlining)
    loaded = program(
        "cortex-m4",
        f"start: mov r4, #0x60000000\n cmp r4, r4\n itee eq\n {access}\n"
        " addne r1, #1\n addne r1, #1\n"
        "end: nop\n.global other, past\nother: add r2, #1\n add r2, #2\n add r2, #4\n"
        "past: nop\n",
    )
    for _ in range(2):
        with pytest.raises(DeviceFault, match="unmapped"):
            loaded.run()
        loaded.device.core.write_register("r2", 0)
        loaded.run("other", "past")
        assert loaded.device.core.read_register("r2") == 7


@pytest.mark.parametrize("inlining", [True, False])
@pytest.mark.parametrize("access", ["ldreq r1, [r4]", "streq r0, [r4]"])
def test_a_watched_access_in_an_it_block(
    program: Callable[..., Loaded],
    access: str,
    inlining: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The core is halted before it, and goes on with the rest of the block."""
    monkeypatch.setattr(counter, "INLINING", inlining)
    loaded = program(
        "cortex-m4",
        "start: ldr r4, =0x20002000\n movs r1, #3\n cmp r4, r4\n itete eq\n"
        f"bad: {access}\n addne r2, #1\n addeq r2, #2\n addne r2, #4\nend: nop\n.ltorg",
    )
    device = loaded.device
    device.set_watchpoints([Watch(0x20002000, 4, True, True)])
    device.set_breakpoints([loaded.labels["end"] & ~1])
    device.core.write_register("pc", loaded.labels["start"])
    device.run()
    assert device.core.read_register("pc") & ~1 == loaded.labels["bad"] & ~1
    assert (device.core.read_register("r1"), device.core.read_register("r2")) == (3, 0)
    device.run()
    assert device.core.read_register("pc") & ~1 == loaded.labels["end"] & ~1
    assert device.core.read_register("r2") == 2
