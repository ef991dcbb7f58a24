"""Accelerators beside a data cache: right drivers give the reference's bits, others do not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

import covp
from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.offload import checked_driver
from covp.graph.attributes import Concatenation
from covp.graph.zoo.builder import GraphBuilder
from covp.peripherals.dma_controller import DmaController
from covp.runtime.session import Session
from tests.building.overlap.graphs import chain, two_branches

MISSING = {"clean": r"covp_clean\(", "invalidate": r"covp_clean_invalidate\("}


def uncoupled(name: str = "disco-f746ng", line: int = 32, write: str = "back") -> Platform:
    """A platform whose RAM is all read through the data cache."""
    platform = load_platform(name)
    memory = tuple(region for region in platform.memory if region.name != "dtcm")
    caches = tuple(
        msgspec.structs.replace(cache, line=line, write=write) if cache.has_data else cache
        for cache in platform.caches
    )
    return msgspec.structs.replace(platform, memory=memory, caches=caches)


class Without:
    """A backend whose driver lacks calls."""

    def __init__(self, backend: AcceleratorBackend, call: str) -> None:
        right = backend.driver

        def driver(base: int) -> Mapping[str, str]:
            files = dict(right(base))
            text = files[f"{backend.name}.c"]
            files[f"{backend.name}.c"] = re.sub(call, "(void)sizeof(", text)
            assert files[f"{backend.name}.c"] != text
            return files

        vars(backend)["driver"] = driver
        self.backend = backend


def differing(model: Any, platform: Platform, backend: Any, runs: int = 2) -> int:
    """Output bytes of some inferences that differ from the reference."""
    program = covp.compile(model, platform, [backend], allow_slower=True)
    found, random = 0, np.random.default_rng(3)
    with Session(platform) as session:
        graph = session.load(program)
        for _ in range(runs):
            inputs = [random.integers(-128, 128, t.shape).astype(t.dtype) for t in program.inputs]
            got = graph.run(*inputs)
            outputs = got if isinstance(got, (list, tuple)) else [got]
            for one, wanted in zip(outputs, program.reference(inputs), strict=True):
                found += int((one != wanted).sum())
    return found


def gathered() -> Any:
    """Two sums side by side, from the core and back to it."""
    b = GraphBuilder("gathered")
    x = b.input((1, 20, 16, 12), scale=0.1, zero_point=2)
    first = b.add("RELU", x)
    both = b.add("CONCATENATION", first, x, attributes=Concatenation(3))
    return b.graph(b.add("RELU", both))


GRAPHS = {"vector": two_branches, "dma": gathered, "gemm": chain, "qconv2d": chain}


@pytest.mark.costly
@pytest.mark.parametrize("spec", ["qconv2d", "gemm", "qconv2d:requantize=false,wait=sleep"])
def test_a_model_is_bit_exact(spec: str) -> None:
    assert differing("resnet", uncoupled(), find_backend(spec), 1) == 0


@pytest.mark.costly
@pytest.mark.parametrize("spec", ["qconv2d", "gemm"])
@pytest.mark.parametrize("missing", MISSING)
def test_a_model_is_wrong_without_a_call(spec: str, missing: str) -> None:
    assert differing("resnet", uncoupled(), Without(find_backend(spec), MISSING[missing]).backend)


@pytest.mark.parametrize("spec", GRAPHS)
@pytest.mark.parametrize("line", [16, 32, 128])
@pytest.mark.parametrize("write", ["back", "through"])
def test_each_unit_beside_other_caches(spec: str, line: int, write: str) -> None:
    assert differing(GRAPHS[spec](), uncoupled("disco-f746ng", line, write), spec) == 0


@pytest.mark.parametrize("spec", GRAPHS)
@pytest.mark.parametrize("missing", MISSING)
def test_each_unit_without_a_call(spec: str, missing: str) -> None:
    backend = Without(find_backend(spec), MISSING[missing]).backend
    assert differing(GRAPHS[spec](), uncoupled(), backend) > 0


@pytest.mark.costly
@pytest.mark.parametrize("spec", GRAPHS)
def test_a_core_that_empties_its_cache_as_a_whole(spec: str) -> None:
    platform = load_platform("vexriscv-full")
    assert differing(GRAPHS[spec](), platform, spec) == 0
    if spec != "dma":  # whose result's lines are not in this small cache any more
        backend = Without(find_backend(spec), MISSING["invalidate"]).backend
        assert differing(GRAPHS[spec](), platform, backend) > 0


@pytest.mark.parametrize("write", ["back", "through"])
def test_a_core_with_zicbom(write: str) -> None:
    platform = msgspec.structs.replace(uncoupled("vexriscv-full", 32, write), core_name="rv32imc")
    assert differing(chain(), platform, "qconv2d") == 0


def test_nothing_is_compiled_where_no_ram_is_cached() -> None:
    """covp_cache.h has empty functions where the line is 0; so for units in the core."""
    for name in ("stm32l4r5", "riscv32", "nucleo-l4r5zi"):
        files = checked_driver(find_backend("gemm"), 0, None, load_platform(name))
        assert "CACHE_LINE 0\n" in files["gemm_place.h"]
    files = checked_driver(find_backend("cfu"), 0, None, load_platform("vexriscv-cfu"))
    assert "CACHE_LINE 0\n" in files["cfu_place.h"]


@pytest.mark.costly
def test_buffers_share_no_line() -> None:
    """None that a unit writes shares a line with one that the core may write meanwhile."""
    for platform, line in ((uncoupled(line=64), 64), (load_platform("stm32l4r5"), 16)):
        program = covp.compile(chain(columns=9, channels=7), platform, accelerators=["qconv2d"])
        assert program.arena_alignment == line and program.arena_bytes % line == 0
        places = [m for layer in program.layers for m in layer.memory]
        assert places and all(place.offset % line == 0 for place in places)


DMA = """
#include <covp_cache.h>
#include <covp_dma.h>
int32_t copy(uint8_t *from, uint8_t *to, int32_t n, int32_t cares)
{
    struct covp_dma *dma = (struct covp_dma *)0x50090000;
    int32_t right = 0;
    for (int32_t i = 0; i < n; i++)
        from[i] = (uint8_t)(7 * i + 1), to[i] = 0, (void)*(volatile uint8_t *)(to + i);
    if (cares)
        covp_clean(from, (size_t)n), covp_clean(to, (size_t)n);
    covp_dma_start(dma, 0, from, to, (uint32_t)n, COVP_DMA_SOURCE_STEP | COVP_DMA_TARGET_STEP);
    while (!(dma->status & COVP_DMA_DONE(0)))
        ;
    if (cares)
        covp_invalidate(to, (size_t)n);
    for (int32_t i = 0; i < n; i++)
        right += to[i] == (uint8_t)(7 * i + 1);
    return right;
}
"""


@pytest.mark.parametrize("name", ["disco-f746ng", "vexriscv-full"])
@pytest.mark.parametrize(("first", "size"), [(0, 256), (5, 201), (33, 20)])
def test_a_dma_controller_sees_memory(name: str, first: int, size: int) -> None:
    """From C of a user; what lies around the target is as before."""
    platform = uncoupled() if name == "disco-f746ng" else load_platform(name)
    with Session(platform) as session:
        session.device.attach(DmaController(), 0x50090000, "dma")  # type: ignore[attr-defined]
        copy = session.load_c(DMA, flags=("-Wall", "-Wextra", "-Werror"))["copy"]
        source, target = (session.tensor(np.full(320, 9, np.uint8)) for _ in range(2))
        places = source.address + first, target.address + first
        careless, careful = (copy(*places, size, cares).result() for cares in (0, 1))
        assert careless is not None and careless < size and careful == size
        after = target.numpy()
        assert (after[:first] == 9).all() and (after[first + size :] == 9).all()
