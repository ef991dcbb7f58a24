"""Caches of the virtual device against a cache in plain Python, fed with the same addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from unicorn import unicorn_const as uc

import covp.device.machine.counter as counter
from covp.chip.platform_file import Platform, WaitStates, load_platform
from covp.chip.platform_file.caches import Cache
from covp.device.timing.trace import cost
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError
from tests.conftest import Loaded, load

RAM = 0x40000000


def cached(*caches: Cache, wait_states: int = 0) -> Platform:
    """A platform whose memory is read through caches only."""
    platform, names = load_platform("vexriscv-full"), tuple(cache.name for cache in caches)
    waits = WaitStates(wait_states, wait_states)
    memory = (
        msgspec.structs.replace(region, caches=names, wait_states=waits)
        for region in platform.memory
    )
    return msgspec.structs.replace(platform, memory=tuple(memory), caches=caches)


class Reference:
    """A cache written from its description."""

    def __init__(self, size: int, cache: Cache) -> None:
        self.cache, self.sets = cache, size // (cache.line * cache.ways)
        self.content: dict[int, list[int]] = {}
        self.lookups = self.misses = 0

    def read(self, address: int, size: int) -> None:
        for line in range(address // self.cache.line, (address + size - 1) // self.cache.line + 1):
            self.look_up(line)

    def use(self, address: int) -> None:
        line = address // self.cache.line
        held = self.content.get(line % self.sets, [])
        if line in held and self.cache.replacement == "lru":
            held.remove(line)
            held.append(line)

    def look_up(self, line: int) -> None:
        held = self.content.setdefault(line % self.sets, [])
        self.lookups += 1
        if line in held:
            if self.cache.replacement == "lru":
                held.remove(line)
                held.append(line)
            return
        self.misses += 1
        if len(held) == self.cache.ways:
            held.pop(0)
        held.append(line)


def random_accesses(places: list[tuple[str, int]], times: int) -> str:
    body = "".join(f" {name} a1, {place}(s1)\n" for name, place in places)
    return (
        f"start:\n li s0, {times}\n li s1, {RAM + 2048}\nloop:\n{body} addi s0, s0, -1\n"
        " addi s1, s1, 52\n beqz s0, end\n j loop\nend:\n j end\n"
    )


def watch(loaded: Loaded, data: Reference, fetched: Reference) -> None:
    """Feed what the emulator accesses to the references."""

    def access(engine: Any, kind: int, address: int, size: int, value: int, user: object) -> None:
        if kind == uc.UC_MEM_READ or data.cache.write == "back":
            data.read(address, size)
        else:
            data.use(address)

    latest = -1

    def block(engine: Any, address: int, size: int, user: object) -> None:
        nonlocal latest
        step = fetched.cache.line
        for line in range(address // step, (address + size - 1) // step + 1):
            if line != latest:
                fetched.look_up(line)
            latest = line

    engine = loaded.device.core.engine
    engine.hook_add(uc.UC_HOOK_MEM_READ | uc.UC_HOOK_MEM_WRITE, access)
    engine.hook_add(uc.UC_HOOK_BLOCK, block)


sizes = st.sampled_from([(256, 16, 1), (256, 16, 2), (512, 32, 4), (128, 64, 2), (64, 16, 4)])
accesses = st.lists(
    st.tuples(
        st.sampled_from(["lw", "sw"]), st.integers(-256, 255).map(lambda n: 4 * n)
    ),
    min_size=1,
    max_size=30,
)  # fmt: skip


@pytest.mark.costly
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    places=accesses,
    shape=sizes,
    replacement=st.sampled_from(["lru", "fifo"]),
    write=st.sampled_from(["through", "back"]),
    wait_states=st.integers(0, 3),
    inlining=st.booleans(),
)
@example(  # a miss takes the place of the wait for what was just stored
    places=[("sw", 0), ("lw", 0)],
    shape=(256, 16, 1),
    replacement="lru",
    write="through",
    wait_states=0,
    inlining=False,
)
def test_misses_are_those_of_a_cache_in_python(
    places, shape, replacement, write, wait_states, inlining
):
    with mock.patch.object(counter, "INLINING", inlining):
        check_misses(places, shape, replacement, write, wait_states)


def check_misses(places, shape, replacement, write, wait_states):
    size, line, ways = shape
    common = {"size": size, "line": line, "ways": ways, "replacement": replacement, "miss": 3}
    data = Cache("d", "data", write=write, **common)
    fetch = Cache("i", "fetch", **common)
    platform = cached(data, fetch, wait_states=wait_states)
    loads, fetches = Reference(size, data), Reference(size, fetch)
    text = random_accesses(places, 20)
    watched = load(platform.name, text, device=VirtualDevice(cached()))
    with watched.device:
        watch(watched, loads, fetches)
        watched.run()
    loaded = load(platform.name, text, device=VirtualDevice(platform))
    with loaded.device as device:
        loaded.run()
        counts = device.core.counter.caches.counts
        assert counts["i"] == (fetches.lookups, fetches.misses)
        assert counts["d"] == (loads.lookups, loads.misses)
        trace = device.counts.trace()
        assert cost(trace, device.core.timing) == trace.cycles == device.cycles
        taken = (loads.misses + fetches.misses) * (3 + line // 4 * (1 + wait_states))
        if write == "back" or not any(name == "sw" for name, _ in places):
            assert trace.causes["cache"] == taken
        else:
            assert trace.causes["cache"] >= taken


STRAIGHT = "start:\n" + " add a1, a2, a3\n" * 64 + "end:\n j end\n"


@pytest.mark.parametrize("wait_states", [0, 2, 5, 9])
@pytest.mark.parametrize("prefetch", [False, True])
def test_prefetch_hides_what_the_code_before_takes(prefetch: bool, wait_states: int) -> None:
    """Straight-line code of sixteen lines of 16 bytes, read in one transfer each."""
    flash = Cache("flash", "fetch", size=64, line=16, ways=4, bus=16, prefetch=prefetch)
    platform = cached(flash, wait_states=wait_states)
    loaded = load(platform.name, STRAIGHT, device=VirtualDevice(platform))
    with loaded.device as device:
        loaded.run()
        line = 1 + wait_states
        hidden = min(4, line) if prefetch else 0  # four instructions of a cycle each
        assert device.counts.trace().causes["cache"] == line + 15 * (line - hidden)


def test_a_restored_device_has_the_same_misses() -> None:
    caches = load_platform("vexriscv-full").caches
    places = [("lw", 4 * n) for n in range(30)]
    platform = cached(*caches)
    loaded = load(platform.name, random_accesses(places, 30), device=VirtualDevice(platform))
    with loaded.device as device:
        cold = loaded.run().cycles
        saved = device.board.save_state()
        warm = loaded.run().cycles
        assert cold is not None and warm is not None and warm < cold
        device.board.load_state(saved)
        assert loaded.run().cycles == warm
        device.reset()
        assert loaded.run().cycles == cold


WRONG = {
    "caches: [{name: l1, holds: data, size: 3K}]": r"caches\[0\].size: 3072 bytes are no power",
    "caches: [{name: l1, holds: data, size: 4K, line: 24}]": r"caches\[0\].line: 24 is not a power",
    "caches: [{name: l1, holds: date, size: 4K}]": r"caches\[0\].holds",
    "caches: [{name: l1, holds: data, size: big}]": r"caches\[0\].size: 'big' is not a size",
    "caches: [{name: l1, holds: data, size: 4K, way: 2}]": r"unknown key 'way': .*ways",
    "caches: [{name: x, holds: data, size: 4K}, {name: x, holds: fetch, size: 4K}]": "used twice",
    "caches: [{name: x, holds: data, size: 4K}]": r"memory\[0\].caches: there is no cache 'l1'",
    "caches: [{name: l1, holds: both, size: 4K}, {name: l2, holds: data, size: 4K}]": "same kind",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_caches_are_rejected(text: str, tmp_path: Path) -> None:
    two = ", l2" if "l2" in text else ""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\ncore: rv32imc\nclock_hz: 1000000\nmemory:\n"
        f"  - {{name: flash, kind: flash, start: 0, size: 64K, caches: [l1{two}]}}\n"
        f"  - {{name: ram, kind: ram, start: 0x20000000, size: 64K}}\n{text}\n"
    )
    with pytest.raises(PlatformError, match=WRONG[text]):
        load_platform(file)
