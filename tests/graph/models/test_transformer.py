"""The int8 transformer of the examples: bit-exact, without the matrix of scores."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.graph.reference import run_reference

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import transformer_kws


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
def test_network(platform):
    graph = transformer_kws.build(tokens=50, heads=4)
    x = np.random.default_rng(2).integers(-128, 128, graph.inputs[0].shape, dtype=np.int8)
    program = covp.compile(graph, platform)
    assert "ATTENTION_TILED" in {layer.op for layer in program.layers}
    with covp.Session(platform) as session:
        found = session.load(program).run(x)
    assert np.array_equal(found, run_reference(graph, [x])[0])
    assert found.astype(int).sum() + 128 * 12 == pytest.approx(256, abs=12)


@pytest.mark.costly
def test_the_systolic_array_takes_the_matrix_products():
    graph = transformer_kws.build(tokens=40, heads=4)
    x = np.random.default_rng(2).integers(-128, 128, graph.inputs[0].shape, dtype=np.int8)
    program = covp.compile(graph, "riscv32", accelerators=["gemm"])
    products = [layer for layer in program.layers if layer.op == "BATCH_MATMUL"]
    assert [layer.target for layer in products] == ["gemm", "gemm"]
    with covp.Session("riscv32") as session:
        found = session.load(program).run(x)
    assert np.array_equal(found, run_reference(graph, [x])[0])


def test_the_quantized_network_is_the_float_one():
    """Against the float network that the scales come from."""
    net = transformer_kws.Quantizing("block")
    real = net.rng.normal(0, 1, (2, 30, transformer_kws.WIDTH))
    value = net.input((1, 30, transformer_kws.WIDTH), real)
    tensor, exact = transformer_kws.block(net, value, heads=4)
    graph = net.builder.graph(tensor)
    source = graph.inputs[0]
    stored = np.clip(np.rint(real[:1] / source.scale) + source.zero_point, -128, 127)
    found = run_reference(graph, [stored.astype(np.int8)])[0]
    error = (found.astype(float) - tensor.zero_point) * tensor.scale - exact[0]
    assert np.abs(error).mean() < 2 * tensor.scale
