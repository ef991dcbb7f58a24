"""Adjacent regions of one kind are one piece of memory: against a map of single bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp import Session
from covp.chip.platform_file import Region, join_regions, load_platform
from covp.errors import PlatformError

KILO = 1024
BANKED = """
name: banked
core: {core}
clock_hz: 1000000
memory:
  - {{name: low, kind: flash, start: 0x08000000, size: 16K}}
  - {{name: ram2, kind: ram, start: 0x20002000, size: 8K}}
  - {{name: ram1, kind: ram, start: 0x20000000, size: 8K}}
  - {{name: high, kind: flash, start: 0x08004000, size: 16K}}
stack: 1K
"""


@given(
    st.lists(st.tuples(st.sampled_from(["flash", "ram", None]), st.integers(1, 3)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_joining_keeps_every_byte_and_leaves_no_neighbours_of_one_kind(
    pieces: list[tuple[str | None, int]], random: object
) -> None:
    memory, start = [], 0
    for number, (kind, size) in enumerate(pieces):
        if kind:
            memory.append(Region(f"r{number}", kind, start * KILO, size * KILO))  # type: ignore[arg-type]
        start += size
    random.shuffle(memory)  # type: ignore[attr-defined]
    before = {k: r.kind for r in memory for k in range(r.start // KILO, r.end // KILO)}
    after = join_regions(tuple(memory))
    assert before == {k: r.kind for r in after for k in range(r.start // KILO, r.end // KILO)}
    assert not [(a, b) for a in after for b in after if a.end == b.start and a.kind == b.kind]
    assert len({region.name for region in after}) == len(after)
    firsts = {region.kind: region for region in reversed(memory)}
    for kind, first in firsts.items():
        held = next(region for region in after if region.kind == kind)
        assert held.holds(first.start, first.bytes), "the first listed stays the first"


@pytest.fixture(params=["rv32imc", "cortex-m4f"])
def banked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "banked.yaml"
    file.write_text(BANKED.format(core=request.param))
    return file


@pytest.mark.costly
@pytest.mark.process
def test_code_and_data_cross_the_border_of_two_banks(banked: Path) -> None:
    """In 16 KB of RAM and 32 KB of flash, of which no bank is large enough."""
    table = np.random.default_rng(1).integers(0, 2**32, 6000, np.uint32)
    source = (
        f"#include <stdint.h>\nstatic const uint32_t table[] = {{{','.join(map(str, table))}}};\n"
        "void take(uint32_t *out, uint32_t from, uint32_t n)\n"
        "{ for (uint32_t i = 0; i < n; i++) out[i] = table[from + i]; }\n"
    )
    with Session(load_platform(banked)) as session:
        module = session.load_c(source)
        out = session.tensor(np.zeros(3000, np.uint32))
        for start in (0, 3000):
            module["take"](out, start, 3000)
            assert np.array_equal(out.numpy(), table[start : start + 3000])
        assert session.memory().flash_bytes > 24000


def test_what_is_wrong_is_said_of_the_regions_as_listed(banked: Path) -> None:
    banked.write_text(banked.read_text().replace("0x08004000", "0x08003c00"))
    with pytest.raises(PlatformError, match=r"memory\[3\]: high .* overlaps low"):
        load_platform(banked)
