"""`Platform.region_of` against a search byte by byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform

PLATFORM = load_platform("cortex-m7")
EDGES = sorted({edge for region in PLATFORM.memory for edge in (region.start, region.end)})


@given(st.sampled_from(EDGES), st.integers(-8, 8), st.integers(1, 16))
def test_region_of(edge: int, offset: int, size: int) -> None:
    address = edge + offset
    holders = [
        {r.name for r in PLATFORM.memory if r.start <= byte <= r.end - 1}
        for byte in range(address, address + size)
    ]
    common = set.intersection(*holders)
    region = PLATFORM.region_of(address, size)
    assert ({region.name} if region else set()) == common
