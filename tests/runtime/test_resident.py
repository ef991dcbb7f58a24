"""Placing data on a device and calling addresses: what verify, tune and tests stand on."""

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp.runtime
from covp import CapacityError, DeviceError, Session, UsageError, load_platform
from covp.device.abilities import Abilities
from covp.device.base import LowLevelDevice
from covp.device.stop import Stop

WEIGH = """
#include <stdint.h>
int32_t weigh(int32_t a, const int8_t *p, float f, int32_t b)
{
    return a * 1000 + p[0] * 100 + (int32_t)(f * 10) + b;
}
float half(float f) { return f / 2; }
"""


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus", "cortex-m4", "host"])
def test_words_and_floats_arrive_in_c_order(platform):
    device = "host" if platform == "host" else "virtual"
    with Session(platform, device=device) as session:
        code = session.load_c(WEIGH)
        weigh = code["weigh"]
        value = code.image.elf.symbols["weigh"].value
        data = session.place(np.array([7], np.int8).tobytes())
        assert session.call(value, 3, data.address, 0.5, -6) == 3000 + 700 + 5 - 6
        # the typed way says the same
        tensor = session.tensor(np.array([7], np.int8))
        assert weigh(3, tensor, 0.5, -6).result() == 3000 + 700 + 5 - 6


@given(
    contents=st.lists(st.binary(min_size=1, max_size=100), min_size=1, max_size=6),
    alignment=st.sampled_from([1, 2, 4, 16, 64]),
)
@settings(max_examples=30, deadline=None)
def test_placed_bytes_stay_where_they_are(contents, alignment):
    with Session("riscv32") as session:
        placed = [session.place(content, alignment) for content in contents]
        for there, content in zip(placed, contents, strict=True):
            assert there.address % alignment == 0
            assert session.read(there.address, len(content)) == content
        spans = sorted((there.address, there.address + there.nbytes) for there in placed)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
        first = placed[0]
        first.free()
        again = session.place(contents[0], alignment)
        assert again.address <= first.address and again.alive and not first.alive


def test_what_cannot_be_placed_or_called():
    with Session("cortex-m0plus") as session:
        with pytest.raises(CapacityError, match="image buffer needs"):
            session.place(1 << 24, what="image buffer")
        with pytest.raises(UsageError, match="argument words"):
            session.call(session.platform.flash.start, *range(13))
        with pytest.raises(DeviceError, match="outside the memory"):
            session.read(0xF0000000, 4)
    with pytest.raises(UsageError, match="closed"):
        session.place(b"x")


class Plain(LowLevelDevice):
    """A device that can do nothing but the four calls."""

    def __init__(self, inner: LowLevelDevice) -> None:
        self.inner = inner

    def read(self, address: int, size: int) -> bytes:
        return self.inner.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self.inner.write(address, data)

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        return Stop(self.inner.execute(entry, stop, timeout).pc)

    def reset(self) -> None:
        self.inner.reset()


def test_a_device_with_four_methods_is_enough():
    """Same results as with all abilities; figures that it does not give are None."""
    from covp.device.virtual import VirtualDevice

    platform = load_platform("cortex-m4")
    plain = Plain(VirtualDevice(platform))
    assert plain.abilities == Abilities()
    with Session(platform, device=plain) as session:
        code = session.load_c("int add(int a, int b) { return a + b; }")
        assert code["add"](2, 3).result() == 5
        code["add"](2, 3)
        cost = session.sync()
        assert (cost.instructions, cost.cycles, cost.sources.cycles) == (None, None, None)
        with pytest.raises(UsageError, match="cannot save its state"):
            session.snapshot()
        code.unload()


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_the_runtime_asks_devices_by_their_abilities_only():
    """No getattr at all, and no isinstance on a class of covp.device."""
    devices = {
        node.name
        for path in (Path(covp.runtime.__file__).parent.parent / "device").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert {"VirtualDevice", "DebuggerDevice", "CountsByPhase"} <= devices
    for path in Path(covp.runtime.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        assert not _calls(tree, "getattr") and not _calls(tree, "hasattr"), path.name
        for call in _calls(tree, "isinstance"):
            names = {n.id for n in ast.walk(call.args[1]) if isinstance(n, ast.Name)}
            assert names.isdisjoint(devices), f"{path.name}:{call.lineno}"
