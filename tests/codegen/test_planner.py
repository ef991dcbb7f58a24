"""The memory planner: nothing that lives at the same time overlaps, the arena holds it all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.codegen.planner import ALIGNMENT, LiveBuffer, plan


@st.composite
def buffers(draw: st.DrawFn) -> list[LiveBuffer]:
    found = []
    for number in range(draw(st.integers(0, 30))):
        first = draw(st.integers(0, 20))
        last = first + draw(st.integers(0, 8))
        found.append(LiveBuffer(f"b{number}", draw(st.integers(0, 500)), first, last))
    return found


def live_bytes(found: list[LiveBuffer]) -> int:
    """Bytes alive at once, at most, each rounded up: no plan can have less."""
    sizes = {id(b): -(-b.nbytes // ALIGNMENT) * ALIGNMENT for b in found}
    return max(
        (sum(sizes[id(b)] for b in found if b.first <= step <= b.last) for step in range(30)),
        default=0,
    )


@given(buffers())
def test_nothing_alive_overlaps(found: list[LiveBuffer]) -> None:
    total = plan(found)
    assert total >= live_bytes(found)
    for n, one in enumerate(found):
        assert one.offset % ALIGNMENT == 0 and 0 <= one.offset <= one.offset + one.nbytes <= total
        for other in found[:n]:
            apart = one.last < other.first or other.last < one.first
            low, high = sorted((one, other), key=lambda buffer: buffer.offset)
            beside = low.offset + low.nbytes <= high.offset
            assert apart or beside or not (one.nbytes and other.nbytes), (one, other)


def test_another_order_of_layers_keeps_what_it_needs() -> None:
    """``begins`` to ``ends`` are the steps in another order: they do not share bytes either."""
    one, other = (
        LiveBuffer("a", 16, 0, 0, begins=0, ends=2),
        LiveBuffer("b", 16, 1, 1, begins=2, ends=3),
    )
    assert plan([one, other]) == 32 and one.offset != other.offset
    assert plan([LiveBuffer("a", 16, 0, 0), LiveBuffer("b", 16, 1, 1)]) == 16


@pytest.mark.parametrize("alignment", [1, 4, 64])
def test_offsets_are_aligned(alignment: int) -> None:
    found = [LiveBuffer(f"b{n}", 5 + n, 0, 1) for n in range(5)]
    plan(found, alignment)
    assert all(buffer.offset % alignment == 0 for buffer in found)
