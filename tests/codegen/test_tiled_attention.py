"""Attention in tiles computes to the bit what the operators that it replaces compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp
from covp.graph.attributes import Elementwise, Softmax, Transpose
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.passes import run_passes
from covp.graph.passes.fuse_attention import expand_attention
from covp.graph.reference import run_all, run_reference
from covp.graph.zoo.builder import GraphBuilder

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]


def attention(
    batch=1, heads=2, queries=5, keys=7, depth=8, width=8, seed=0,
    transposed=True, scaled=True, adjoint=True, same=False, softmax_scale=0.08, output=False,
):  # fmt: skip
    """int8 attention as converters write it, and values for its inputs."""
    rng = np.random.default_rng(seed)
    b = GraphBuilder("attention")
    if same:
        keys, width = queries, depth

    def operand(rows, columns, order):
        shape = (batch, rows, heads, columns) if transposed else (batch, heads, rows, columns)
        zero = int(rng.integers(-30, 30)) * int(rng.integers(0, 2))
        tensor = b.input(shape, scale=0.03, zero_point=zero)
        axes = order if transposed else tuple((0, 2, 1, 3).index(axis) for axis in order)
        moved = b.add("TRANSPOSE", tensor, attributes=Transpose(axes))
        return tensor, moved if axes != (0, 1, 2, 3) else tensor

    source, q = operand(queries, depth, (0, 2, 1, 3))
    _, k = operand(keys, depth, (0, 2, 1, 3) if adjoint else (0, 2, 3, 1))
    v = operand(keys, width, (0, 2, 1, 3))[1]
    if same:
        b.inputs, b.ops = [source], [op for op in b.ops if op.output is q]
        k = v = q
        adjoint = True
    scores = b.add(
        "BATCH_MATMUL", q, k, attributes=BatchMatMul(False, adjoint), scale=0.05, zero_point=3
    )
    if scaled:
        factor = b.constant(np.array([100], np.int8), scale=1 / 300)
        scores = b.add(
            "MUL", scores, factor, attributes=Elementwise(), scale=softmax_scale, zero_point=-5
        )
    weights = b.add("SOFTMAX", scores, attributes=Softmax(), scale=1 / 256, zero_point=-128)
    mixed = b.add(
        "BATCH_MATMUL",
        weights,
        v,
        attributes=BatchMatMul(),
        scale=0.02,
        zero_point=int(rng.integers(-9, 9)),
    )
    if transposed:
        mixed = b.add("TRANSPOSE", mixed, attributes=Transpose((0, 2, 1, 3)))
    graph = b.graph(mixed, *([weights] if output else []))
    values = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in graph.inputs]
    return graph, values


LAYERS = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 2),
        "heads": st.integers(1, 3),
        "queries": st.integers(1, 7),
        "keys": st.one_of(st.integers(1, 12), st.just(150)),
        "depth": st.integers(1, 9),
        "width": st.integers(1, 9),
        "seed": st.integers(0, 999),
        "transposed": st.booleans(),
        "scaled": st.booleans(),
        "adjoint": st.booleans(),
        "same": st.booleans(),
        "softmax_scale": st.sampled_from([0.004, 0.08, 0.3]),
    }
)


@pytest.mark.costly
@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=12, deadline=None)
@given(LAYERS)
def test_tiles_are_bit_exact(run_layer, platform, layer):
    graph, values = attention(**layer)
    lowered = run_passes(graph)
    # a TRANSPOSE that moves nothing has become a RESHAPE
    assert {op.kind for op in lowered.ops} <= {"ATTENTION_TILED", "RESHAPE"}
    op = next(op for op in lowered.ops if op.kind == "ATTENTION_TILED")
    wanted = run_reference(graph, values)[0]
    assert np.array_equal(run_reference(lowered, values)[0], wanted)
    known = run_all(lowered, values)
    inputs = [known[name] for name in dict.fromkeys(t.name for t in op.inputs if t is not None)]
    found = [run_layer(platform, op, *inputs)[0]]
    if run_layer.code.in_place:
        found.append(run_layer(platform, op, *inputs, in_place=True)[0])
    assert all(np.array_equal(result, known[op.output.name]) for result in found)


def test_a_model_runs_with_less_memory():
    graph, values = attention(heads=4, queries=64, keys=64)
    program = covp.compile(graph, "cortex-m4")
    assert [layer.macs for layer in program.layers] == [2 * 4 * 64 * 64 * 8]
    assert program.arena_bytes < graph.ops[3].output.size  # the scores of all heads
    with covp.Session("cortex-m4") as session:
        found = session.load(program).run(*values)
    assert np.array_equal(found, run_reference(graph, values)[0])


def test_what_is_read_elsewhere_stays():
    graph, _ = attention(output=True)
    lowered = run_passes(graph)
    assert "ATTENTION_TILED" not in {op.kind for op in lowered.ops}


def test_expanded_again_it_is_the_graph_before():
    graph, values = attention()
    lowered = run_passes(graph)
    expand_attention(lowered)
    assert [op.kind for op in lowered.ops] == [op.kind for op in graph.ops]
    assert np.array_equal(run_reference(lowered, values)[0], run_reference(graph, values)[0])
