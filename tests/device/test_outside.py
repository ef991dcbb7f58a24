"""Input from outside the simulation, and models that are clocked, as programs see them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from covp.device.machine import mmio
from covp.errors import DeviceFault
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from tests.conftest import Loaded

BASE, LINE = 0x50000000, 5
Make = Callable[[str, str], Loaded]

RISCV = """
start:
    lui s0, 0x50000
    li t0, 0x800
    csrs mie, t0
@body
    lw a0, 0(s0)
end:
    j end
"""
ARM = f"""
vectors:
{chr(10).join(" .word 0" for _ in range(32))}
start:
    cpsid i
    ldr r6, =0x{BASE:08x}
    ldr r0, =0xe000e100
    movs r1, #{1 << LINE}
    str r1, [r0]
@body
    ldr r0, [r6]
end:
    b end
    .ltorg
"""
BODIES = {"riscv32": (RISCV, " wfi", "a0"), "cortex-m4": (ARM, " wfi", "r0")}
POLLS = {
    "riscv32": "1: lw a1, 0(s0)\n beqz a1, 1b",
    "cortex-m4": "1: ldr r1, [r6]\n cmp r1, #0\n beq 1b",
}


class Inbox(Peripheral):
    """A register that something outside fills; its line goes up with it."""

    registers = RegisterMap(Register("VALUE", 0x00))

    def receive(self, value: int) -> None:
        self.values["VALUE"] = value
        self.interrupt.set(True)


def attach(loaded: Loaded) -> Inbox:
    inbox = Inbox()
    loaded.device.attach(inbox, BASE, "inbox", LINE)
    return inbox


@pytest.mark.parametrize("waiting", ["asleep", "polling"])
@pytest.mark.parametrize("platform", BODIES)
def test_a_post_from_a_thread_arrives(program: Make, platform: str, waiting: str) -> None:
    text, wfi, register = BODIES[platform]
    body = wfi if waiting == "asleep" else POLLS[platform]
    loaded = program(platform, text.replace("@body", body))
    inbox = attach(loaded)
    threads: list[int] = []

    def arrive() -> None:
        threads.append(threading.get_ident())
        inbox.receive(1234)

    with loaded.device.clock.outside() as source:
        timer = threading.Timer(0.05, source.post, [arrive])
        timer.start()
        loaded.run(timeout=60)
        timer.join()
    assert loaded.device.core.read_register(register) == 1234
    assert threads == [threading.get_ident()], "it ran in another thread"


@pytest.mark.parametrize("platform", BODIES)
def test_the_time_limit_ends_a_wait_for_the_outside(program: Make, platform: str) -> None:
    text, wfi, _ = BODIES[platform]
    loaded = program(platform, text.replace("@body", wfi))
    attach(loaded)
    with loaded.device.clock.outside(), pytest.raises(DeviceFault, match="timeout"):
        loaded.run(timeout=0.05)
    # without a source the same program waits for nothing
    with pytest.raises(DeviceFault, match="endless sleep"):
        loaded.run(timeout=60)


@pytest.mark.parametrize("platform", BODIES)
def test_polling_for_ever_is_a_fault_unless_input_may_come(
    program: Make, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mmio, "_ENDLESS", 100)
    text = BODIES[platform][0].replace("@body", POLLS[platform])
    loaded = program(platform, text)
    inbox = attach(loaded)
    with pytest.raises(DeviceFault, match=r"endless poll.*inbox.VALUE was read 100 times"):
        loaded.run(timeout=60)
    with loaded.device.clock.outside() as source:
        timer = threading.Timer(0.05, source.post, [lambda: inbox.receive(1)])
        timer.start()
        loaded.run(timeout=60)
        timer.join()


def test_a_source_that_closes_leaves_an_endless_sleep(program: Make) -> None:
    text, wfi, _ = BODIES["riscv32"]
    loaded = program("riscv32", text.replace("@body", wfi))
    attach(loaded)
    source = loaded.device.clock.outside()
    timer = threading.Timer(0.05, source.close)
    timer.start()
    with pytest.raises(DeviceFault, match="endless sleep"):
        loaded.run(timeout=60)
    timer.join()


def test_ctrl_c_ends_a_wait_for_the_outside(program: Make) -> None:
    text, wfi, _ = BODIES["riscv32"]
    loaded = program("riscv32", text.replace("@body", wfi))
    attach(loaded)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with loaded.device.clock.outside(), pytest.raises(KeyboardInterrupt):
        loaded.run(timeout=60)
    timer.join()


def test_a_debuggers_run_waits_and_sleeps_on_after_a_request(program: Make) -> None:
    text, wfi, register = BODIES["riscv32"]
    loaded = program("riscv32", text.replace("@body", wfi))
    inbox, device = attach(loaded), loaded.device
    device.core.write_register("pc", loaded.labels["start"])
    device.set_breakpoints([loaded.labels["end"]])

    def halted(resumed: bool) -> bool:
        ended: list[bool] = []
        thread = threading.Thread(target=lambda: ended.append(device.run(resumed)))
        thread.start()
        while not device.core.sleep.is_asleep:
            time.sleep(0.001)
        while thread.is_alive():
            device.request_halt()
            thread.join(0.01)
        return ended == [False]

    assert halted(resumed=True)
    pc, count = device.core.read_register("pc"), device.instructions
    assert pc == loaded.labels["end"] - 2, "it is asleep at the wfi, which has retired"
    assert halted(resumed=False)
    assert (device.core.read_register("pc"), device.instructions) == (pc, count), "it woke up"
    inbox.receive(77)
    assert device.run(resumed=False) and device.core.read_register(register) == 77


class Clocked(Peripheral):
    """A counter that is clocked: one more every ten cycles, its line up at a limit."""

    registers = RegisterMap(
        Register("VALUE", 0x00, access="ro", on_read="catch_up"),
        Register("LIMIT", 0x04, on_write="begin"),
    )

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.started: int | None = None
        super().__init__()

    def begin(self, value: int) -> None:
        self.started = self.clock.now
        self.clock.join(self)

    def advance(self, until: int) -> int | None:
        assert self.started is not None
        self.seen.append(until)
        self.values["VALUE"] = (until - self.started) // 10
        if self.values["VALUE"] >= self.values["LIMIT"]:
            self.interrupt.set(True)
            self.clock.leave(self)
            return None
        return until + 10

    def catch_up(self) -> None:
        self.clock.advance(self)


def test_a_clocked_model_is_advanced_while_the_core_sleeps(program: Make) -> None:
    body = " li t0, 500\n sw t0, 4(s0)\n wfi"
    loaded = program("riscv32", RISCV.replace("@body", body))
    model = Clocked()
    loaded.device.attach(model, BASE, "clocked", LINE)
    stop = loaded.run()
    assert loaded.device.core.read_register("a0") == 500
    assert model.started is not None
    assert model.seen == [model.started + 10 * n for n in range(501)]
    assert stop.cycles is not None and 5000 < stop.cycles < 5050


def test_a_clocked_model_catches_up_before_it_is_read(program: Make) -> None:
    body = " li t0, 500\n sw t0, 4(s0)\n" + " nop\n" * 95
    loaded = program("riscv32", RISCV.replace("@body", body))
    model = Clocked()
    loaded.device.attach(model, BASE, "clocked", LINE)
    loaded.run()
    assert loaded.device.core.read_register("a0") == 9
    assert 90 <= model.seen[-1] - model.seen[0] < 100
