"""The linear allocator against a map of single bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.chip.platform_file import Region
from covp.errors import CapacityError
from covp.runtime.allocator import Block, LinearAllocator

REGIONS = (Region("low", "ram", 0x1000, 1024), Region("high", "ram", 0x8000, 2048))
REQUESTS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 700), st.sampled_from([1, 4, 16, 64])),
        st.tuples(st.just("free"), st.integers(0, 30), st.just(0)),
    ),
    max_size=40,
)


def first_fit(free: set[int], size: int, alignment: int) -> int | None:
    """The oracle: try every address of every region in turn."""
    for region in REGIONS:
        for address in range(region.start, region.end - size + 1):
            if address % alignment == 0 and all(a in free for a in range(address, address + size)):
                return address
    return None


@given(REQUESTS)
def test_takes_the_lowest_address_that_fits_and_merges_what_is_freed(
    requests: list[tuple[str, int, int]],
) -> None:
    allocator = LinearAllocator(REGIONS)
    free = {a for region in REGIONS for a in range(region.start, region.end)}
    held: list[Block] = []
    for kind, number, alignment in requests:
        if kind == "free":
            if held:
                block = held.pop(number % len(held))
                allocator.free(block)
                free.update(range(block.address, block.end))
            continue
        if number == 0:
            assert allocator.allocate(0, alignment, "nothing").size == 0
            continue
        expected = first_fit(free, number, alignment)
        if expected is None:
            with pytest.raises(CapacityError) as refused:
                allocator.allocate(number, alignment, "x")
            assert refused.value.needed == number
            continue
        block = allocator.allocate(number, alignment, "x")
        assert block == Block(expected, number)
        free -= set(range(block.address, block.end))
        held.append(block)
    assert allocator.used_bytes == sum(block.size for block in held)
    assert sum(gap.size for gap in allocator.gaps()) == len(free)


def test_the_refusal_says_what_is_needed_and_what_there_is() -> None:
    allocator = LinearAllocator(REGIONS)
    with pytest.raises(CapacityError, match=r"tensor 3000 needs 3000 bytes.*2048.*952 bytes too"):
        allocator.allocate(3000, 16, "tensor 3000")


def test_a_block_cannot_be_freed_twice() -> None:
    allocator = LinearAllocator(REGIONS)
    block = allocator.allocate(8, 4, "x")
    allocator.free(block)
    with pytest.raises(ValueError):
        allocator.free(block)
