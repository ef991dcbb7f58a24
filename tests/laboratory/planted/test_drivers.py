"""Drivers under a device that answers at once, late or never; loops that never end."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.runtime.session import Session
from covp.testing import Kernel
from tests.laboratory.planted.bench import Bench, check, named_line, on_platforms
from tests.laboratory.planted.sections import sections

FILE = "drivers.c"
DELAYS = {"early": 0, "late": 700, "never": None}
"""Cycles until the answer."""


class Answering(Peripheral):
    """Computes 3 * START + 1, tells it by STATUS and by a word of memory at FLAG."""

    registers = RegisterMap(
        Register("START", 0x00, on_write="start"),
        Register("STATUS", 0x04),
        Register("RESULT", 0x08, access="ro"),
        Register("FLAG", 0x0C),
    )
    delay: int | None = 0
    job = 0

    def start(self, value: int) -> None:
        self.values["RESULT"] = 0xDEAD
        self.job += 1
        if self.delay == 0:
            self.finish(self.job, value)
        elif self.delay is not None:
            self.clock.at(self.clock.now + self.delay, partial(self.finish, self.job, value))

    def finish(self, job: int, value: int) -> None:
        if job != self.job:
            return
        self.values["RESULT"] = 3 * value + 1
        self.values["STATUS"] = 1
        if self.values["FLAG"]:
            self.bus.write(self.values["FLAG"], (1).to_bytes(4, "little"))


@pytest.fixture
def session_with_device(bench):
    """A session on a platform with the device on its bus."""
    taken: list[VirtualDevice] = []

    def get(platform: str, toolchain: str) -> tuple[Session, Answering]:
        session = bench.session(platform, toolchain=toolchain)
        base = 0x70000000 if platform == "riscv32" else 0x50080000
        model = Answering()
        assert isinstance(session.device, VirtualDevice)
        session.device.attach(model, base, "answering")
        taken.append(session.device)
        return session, model

    yield get
    for device in taken:
        device.board.detach("answering")


def answers(kernel: Kernel, model: Answering, delay: int | None) -> list[int]:
    """What the driver returns for some jobs in a row."""
    model.reset()
    model.job += 1  # what is under way is forgotten
    model.delay = delay
    return [int(kernel(value) or 0) for value in (1, 5, 2)]


def expected(delay: int | None) -> list[int]:
    return [-1] * 3 if delay is None else [4, 16, 7]


DRIVERS = [name for name in sections(FILE) if name not in ("wait_forever", "byte_index")]


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(DRIVERS))
def test_answers(bench, session_with_device, name, platform, toolchain):
    session, model = session_with_device(platform, toolchain)
    buggy, twin = (bench.kernel(name, FILE, bug, session) for bug in (True, False))
    assert any(answers(buggy, model, delay) != expected(delay) for delay in DELAYS.values())
    for delay in DELAYS.values():
        assert answers(twin, model, delay) == expected(delay)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "platform", "toolchain"), on_platforms(["wait_forever"], ["riscv32", "cortex-m4"])
)
def test_a_device_that_never_answers(bench, session_with_device, name, platform, toolchain):
    session, model = session_with_device(platform, toolchain)
    section = sections(FILE)[name]
    kernel = bench.kernel(name, FILE, True, session)
    assert answers(kernel, model, 700) == expected(700)
    with pytest.raises(DeviceFault) as caught:
        answers(kernel, model, None)
    assert caught.value.kind == section.kind
    assert named_line(caught.value, section) in section.lines
    twin = bench.kernel(name, FILE, False, session)
    assert all(answers(twin, model, delay) == expected(delay) for delay in DELAYS.values())


def test_an_index_that_is_too_small(bench: Bench):
    """The twin ends; the bug is a fault after the session's time, somewhere in the loop."""

    def call(kernel, draw):
        kernel("byte_index")(np.ones(300, np.uint8), 300)

    check(bench, sections(FILE)["byte_index"], call, bench.session("cortex-m4", timeout=0.3))
