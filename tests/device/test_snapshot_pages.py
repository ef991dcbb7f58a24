"""Snapshots in any order, whoever stored to memory in between: memory is what it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp
from covp.runtime.tensor import DeviceTensor
from covp.testing import Kernel

SOURCE = """
#include <stdint.h>
static uint32_t calls;
uint32_t fill(uint8_t *p, int32_t pages, int32_t step)
{
    for (int32_t i = 0; i < pages; i++)
        p[4096 * i + step] += 1 + i;
    return ++calls;
}
"""
PAGES = 100
Steps = list[tuple[str, int, int]]


@cache
def rig(platform: str) -> tuple[Kernel, DeviceTensor]:
    """Kept for all examples: states of earlier ones are loaded over later ones."""
    session = covp.Session(platform)
    kernel = Kernel(session.load_c(SOURCE)["fill"])
    return kernel, session.tensor(np.zeros(PAGES * 4096, np.uint8))


@pytest.fixture(scope="module", autouse=True)
def close() -> Iterator[None]:
    yield
    for platform in ("cortex-m4", "riscv32"):
        rig(platform)[0].session.close()
    rig.cache_clear()


steps = st.lists(
    st.tuples(
        st.sampled_from(["core", "core", "host", "master", "held", "save", "load", "load"]),
        st.integers(0, PAGES - 1),
        st.integers(0, 4090),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
@settings(max_examples=40, deadline=None)
@given(steps=steps)
def test_memory_is_as_it_was_saved(platform: str, steps: Steps) -> None:
    kernel, tensor = rig(platform)
    session, device = kernel.session, kernel.session.device
    held = device.board.bus.view(tensor.address, 4096)  # type: ignore[attr-defined]
    saved = []

    def save() -> None:
        memory = [one.content.copy() for one in device.board.memories]  # type: ignore[attr-defined]
        saved.append((session.snapshot(), memory, kernel(tensor, 1, 0), kernel.latest))

    save()
    for kind, page, offset in steps:
        address = tensor.address + 4096 * page + offset
        if kind == "core":
            kernel(tensor, page + 1, offset)
        elif kind == "host":
            session.write(address, bytes([offset % 251, 7]))
        elif kind == "master":
            device.board.bus.write(address, b"master")  # type: ignore[attr-defined]
        elif kind == "held":
            held[offset] += 1
        elif kind == "save":
            save()
        else:
            snapshot, memory, result, cost = saved[page % len(saved)]
            session.restore(snapshot)
            for one, before in zip(device.board.memories, memory, strict=True):  # type: ignore[attr-defined]
                assert np.array_equal(one.content, before)
            assert kernel(tensor, 1, 0) == result
            assert kernel.latest == cost
