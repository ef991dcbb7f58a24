"""Lifetimes in the arena: a run in which all other bytes are destroyed is right; memory maps."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.base.request import BuildOptions
from covp.codegen.lifetimes import arena_tensors, live_bytes
from covp.codegen.program import Program
from covp.evaluation import build, run
from covp.graph.models import as_graph
from covp.runtime.hosted_graph import HostedGraph
from tests.plain import plain


def between(program: Program, position: int) -> list[tuple[int, int]]:
    """What is needed after a layer: stretches of the arena."""
    tensors = arena_tensors(program)
    after = [t for t in tensors if t.first <= position and t.last > position]
    after += [t for t in tensors if t.kind in ("output", "state") and t.last == position]
    return [(t.offset, t.offset + t.bytes) for t in after]


@pytest.mark.costly
@pytest.mark.process
@pytest.mark.parametrize(
    ("model", "accelerators", "streaming"),
    [("resnet", [], False), ("resnet", ["gemm"], False), ("sww", [], True), ("vww", [], False)],
)
def test_bytes_that_nothing_holds_may_be_lost(
    model: str, accelerators: list[str], streaming: bool
) -> None:
    graph = as_graph(model, BuildOptions(streaming=int(streaming)))
    program = covp.compile(graph, "cortex-m4", accelerators=accelerators)
    rng = np.random.default_rng(3)
    inputs = [rng.integers(-128, 128, t.shape).astype(t.dtype) for t in program.inputs]
    garbage = rng.integers(0, 256, program.arena_bytes, dtype=np.uint8)
    with covp.Session("cortex-m4") as session:
        module = session.load(program, hosted=True)
        assert isinstance(module, HostedGraph)
        arena = module.address(program.arena_symbol)
        for position, _ in enumerate(module.steps(*inputs, fill=b"\x5a")):
            kept = np.frombuffer(session.io.read(arena, program.arena_bytes), np.uint8)
            filled = garbage.copy()
            for start, stop in between(program, position):
                filled[start:stop] = kept[start:stop]
            session.io.write(arena, filled.tobytes())
        outputs = module.outputs()
    for got, wanted in zip(outputs, program.reference(inputs), strict=True):
        assert np.array_equal(got, wanted)


def test_most_bytes_are_live_where_the_arena_is_full() -> None:
    program = covp.compile("kws", "cortex-m4")
    live = live_bytes(arena_tensors(program), len(program.layers))
    sizes = [sum(p.nbytes for p in layer.memory) for layer in program.layers]
    assert all(one <= most for one, most in zip(live, sizes, strict=True))  # a chain of layers
    assert max(live) == program.arena_bytes


@pytest.mark.costly
@pytest.mark.process
def test_the_record_has_a_memory_map() -> None:
    found = run(build("toycar", "riscv32", ["gemm"]), check="none")
    document = plain(found.record())
    used = {place["what"]: place for region in document["memory_map"] for place in region["used"]}
    in_regions = sum(place["bytes"] for place in used.values())
    assert in_regions == found.memory.flash_bytes + found.memory.ram_bytes
    assert used["arena"]["bytes"] == found.memory.arena_bytes
    assert used["stack"]["bytes"] == found.memory.stack_bytes
    for region in document["memory_map"]:
        ends = [place["address"] + place["bytes"] for place in region["used"]]
        starts = [place["address"] for place in region["used"]][1:]
        assert all(end <= start for end, start in zip(ends, starts, strict=False))
    code = [layer["code_bytes"] for layer in document["layers"]]
    assert 0 < sum(code) < used["model: code"]["bytes"]
    parameters = sum(layer["parameter_bytes"] for layer in document["layers"])
    assert 264_192 <= parameters < used["model: constants"]["bytes"]  # weights of ten dense layers
