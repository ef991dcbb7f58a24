"""Data caches hold data: core, bus master and maintenance against a cache with bytes in Python."""

from __future__ import annotations

from typing import Any, NamedTuple
from unittest import mock

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp.device.machine.counter as counter
from covp.chip.platform_file import Platform, load_platform
from covp.chip.platform_file.caches import Cache
from covp.device.timing.trace import cost
from covp.device.virtual import VirtualDevice
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from tests.conftest import Loaded, load

RAM, BYTES, MASTER = 0x20020000, 1024, 0x50080000
OPERATIONS = {"clean": 0xE000EF68, "invalidate": 0xE000EF5C, "both": 0xE000EF70}
"""DCCMVAC, DCIMVAC, DCCIMVAC: Arm DDI0403E B3.2.2."""


class Step(NamedTuple):
    """What core ("load", "store", an operation), bus master ("read", "write") or host do."""

    what: str
    offset: int
    size: int
    value: int = 0


class ReferenceCache:
    """A cache with bytes, from the definition: every access of the core is one of a held line."""

    def __init__(self, cache: Cache, size: int) -> None:
        self.cache, self.sets = cache, size // (cache.line * cache.ways)
        self.memory = bytearray(BYTES)
        self.held: dict[int, list[list[Any]]] = {}
        """By set, the first to leave first: number, bytes, whether dirty."""

    def step(self, step: Step) -> bytes:
        """What is seen by a load or a read."""
        data = step.value.to_bytes(8, "little")[: step.size]
        place = slice(step.offset, step.offset + step.size)
        if step.what == "read":
            return bytes(self.memory[place])
        if step.what == "write":
            self.memory[place] = data
        elif step.what in OPERATIONS:
            self.maintain(step.offset // self.cache.line, step.what)
        elif step.what == "host":
            self.memory[place] = data
            for at in range(step.offset, step.offset + step.size):
                found = self.find(at // self.cache.line)
                if found is not None:
                    found[1][at % self.cache.line] = data[at - step.offset]
        elif step.what == "load":
            return bytes(self.byte(at) for at in range(step.offset, step.offset + step.size))
        else:
            for number in sorted({at // self.cache.line for at in range(*place.indices(BYTES))}):
                self.take_in(number, is_store=True)
            for at, byte in enumerate(data, step.offset):
                self.store(at, byte)
        return b""

    def find(self, number: int) -> list[Any] | None:
        lines = self.held.get(number % self.sets, ())
        return next((line for line in lines if line[0] == number), None)

    def take_in(self, number: int, is_store: bool = False) -> list[Any] | None:
        lines, found = self.held.setdefault(number % self.sets, []), self.find(number)
        if found is not None:
            if self.cache.replacement == "lru":
                lines.remove(found)
                lines.append(found)
            return found
        if is_store and self.cache.write == "through":
            return None
        if len(lines) == self.cache.ways:
            self.go_back(lines.pop(0))
        start = number * self.cache.line
        lines.append([number, bytearray(self.memory[start : start + self.cache.line]), False])
        return lines[-1]

    def go_back(self, line: list[Any]) -> None:
        start = line[0] * self.cache.line
        if line[2]:
            self.memory[start : start + self.cache.line] = line[1]
        line[2] = False

    def byte(self, at: int) -> int:
        line = self.take_in(at // self.cache.line)
        assert line is not None
        return int(line[1][at % self.cache.line])

    def store(self, at: int, byte: int) -> None:
        line = self.find(at // self.cache.line)
        if line is not None:
            line[1][at % self.cache.line] = byte
            line[2] = self.cache.write == "back"
        if self.cache.write == "through":
            self.memory[at] = byte

    def maintain(self, number: int, what: str) -> None:
        line = self.find(number)
        if line is None:
            return
        if what != "invalidate":
            self.go_back(line)
        if what != "clean":
            self.held[number % self.sets].remove(line)

    def seen(self, at: int) -> int:
        """What the core, and a debugger, would see, without a change."""
        line = self.find(at // self.cache.line)
        return int(self.memory[at] if line is None else line[1][at % self.cache.line])


class Master(Peripheral):
    """Does the step of a number, or keeps what the core reports."""

    registers = RegisterMap(
        Register("DO", 0, access="wo", on_write="do"),
        Register("REPORT", 4, access="wo", on_write="keep"),
    )

    def __init__(self, steps: list[Step], host: Any) -> None:
        super().__init__()
        self.steps, self.host, self.seen = steps, host, list[bytes]()

    def do(self, number: int) -> None:
        step = self.steps[number]
        data = step.value.to_bytes(8, "little")[: step.size]
        if step.what == "read":
            self.seen.append(self.bus.read(RAM + step.offset, step.size))
        elif step.what == "write":
            self.bus.write(RAM + step.offset, data)
        else:
            self.host(RAM + step.offset, data)

    def keep(self, value: int) -> None:
        self.seen.append(value.to_bytes(4, "little"))


def platform_of(cache: Cache) -> Platform:
    """A Cortex-M7 whose second RAM is read through the cache."""
    platform = load_platform("disco-f746ng")
    memory = tuple(
        msgspec.structs.replace(
            region, caches=("d",) if region.name == "sram" else (), wait_states=0
        )
        for region in platform.memory
    )
    return msgspec.structs.replace(platform, memory=memory, caches=(cache,))


NAMES = {1: "b", 2: "h", 4: ""}


def assembly(steps: list[Step]) -> str:
    text = [f"start:\n ldr r5, ={MASTER}"]
    for number, step in enumerate(steps):
        address = f" ldr r1, ={RAM + step.offset}"
        if step.what == "load":
            text.append(f"{address}\n ldr{NAMES[step.size]} r0, [r1]\n str r0, [r5, #4]")
        elif step.what == "store":
            text.append(f"{address}\n ldr r0, ={step.value}\n str{NAMES[step.size]} r0, [r1]")
        elif step.what in OPERATIONS:
            text.append(f"{address}\n ldr r0, ={OPERATIONS[step.what]}\n str r1, [r0]")
        else:
            text.append(f" ldr r0, ={number}\n str r0, [r5]")
    return "\n".join([*text, " b end", " .ltorg", "end:\n b end\n"])


def seen_by_device(
    platform: Platform, steps: list[Step], restores: bool = False
) -> tuple[Loaded, list[bytes]]:
    device = VirtualDevice(platform)
    master = Master(steps, device.write)
    device.attach(master, MASTER, "master")
    loaded = load("disco-f746ng", assembly(steps), device=device)
    saved = device.board.save_state()
    if restores:
        loaded.run()
        device.board.load_state(saved)
    loaded.run()
    return loaded, master.seen


def seen_by_reference(reference: ReferenceCache, steps: list[Step]) -> list[bytes]:
    seen = (reference.step(step) for step in steps)
    pairs = zip(steps, seen, strict=True)
    return [d if s.what == "read" else d.ljust(4, b"\0") for s, d in pairs if d]


shapes = st.sampled_from([(64, 16, 1), (128, 16, 2), (256, 32, 4), (256, 32, 8), (64, 8, 4)])
offsets = st.integers(0, BYTES - 8) | st.integers(0, 95)
steps = st.lists(
    st.builds(Step, st.sampled_from(["load", "store"]), offsets, st.sampled_from([1, 2, 4]),
              st.integers(0, 255))
    | st.builds(Step, st.sampled_from(["read", "write", "host"]), offsets, st.integers(1, 8),
                st.integers(0, 2**64 - 1))
    | st.builds(Step, st.sampled_from(list(OPERATIONS)), offsets, st.just(1), st.just(0)),
    min_size=1, max_size=60,
)  # fmt: skip


@pytest.mark.costly
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=steps,
    shape=shapes,
    replacement=st.sampled_from(["lru", "fifo"]),
    write=st.sampled_from(["through", "back"]),
    inlining=st.booleans(),
    restores=st.booleans(),
)
def test_core_and_master_see_what_a_cache_with_bytes_lets_them_see(
    steps, shape, replacement, write, inlining, restores
):
    size, line, ways = shape
    cache = Cache("d", "data", size, line=line, ways=ways, replacement=replacement, write=write)
    reference = ReferenceCache(cache, size)
    wanted = seen_by_reference(reference, steps)
    with mock.patch.object(counter, "INLINING", inlining):
        loaded, seen = seen_by_device(platform_of(cache), steps, restores)
    with loaded.device as device:
        assert seen == wanted
        assert device.read(RAM, BYTES) == bytes(reference.seen(at) for at in range(BYTES))
        memory = next(m for m in device.board.memories if m.region.name == "sram")
        assert memory.load(RAM, BYTES).tobytes() == bytes(reference.memory)
        if not restores:
            trace = device.counts.trace()
            assert cost(trace, device.core.timing) == trace.cycles == device.cycles
        device.reset()
        for lines in reference.held.values():
            for held in lines:
                reference.go_back(held)
        assert device.read(RAM, BYTES) == bytes(reference.memory)
