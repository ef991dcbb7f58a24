"""The CNN of the microTVM thesis: its layers, bit-exact on the cores.

LiteRT's word on it is in tests/graph/test_models.py, with the other models.
"""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.graph.models import load_model

INPUTS = 3


def test_layers() -> None:
    graph = load_model("cifar10")
    layers = [(op.kind, op.output.shape) for op in graph.ops]
    assert layers == [
        ("CONV_2D", (1, 32, 32, 32)),
        ("MAX_POOL_2D", (1, 16, 16, 32)),
        ("CONV_2D", (1, 16, 16, 32)),
        ("MAX_POOL_2D", (1, 8, 8, 32)),
        ("CONV_2D", (1, 8, 8, 64)),
        ("MAX_POOL_2D", (1, 4, 4, 64)),
        ("RESHAPE", (1, 1024)),
        ("FULLY_CONNECTED", (1, 10)),
    ]
    kernels = [op.input(1).shape for op in graph.ops if op.kind == "CONV_2D"]
    assert kernels == [(32, 5, 5, 3), (32, 5, 5, 32), (64, 5, 5, 32)]
    assert all(op.attributes.activation == "relu" for op in graph.ops if op.kind == "CONV_2D")


@pytest.mark.costly
@pytest.mark.parametrize("core", ["cortex-m7f", "cortex-m7f-nodsp"])
def test_bits_on_a_cortex_m7(core: str) -> None:
    """The core without DSP refuses its instructions: a kernel that used one would fault."""
    platform = covp.load_platform("cortex-m7")
    check(covp.Platform(platform.name, core, platform.clock_hz, platform.memory))


@pytest.mark.costly
@pytest.mark.parametrize("name", ["riscv32", "cortex-m4"])
def test_bits(name: str) -> None:
    check(covp.load_platform(name))


def check(platform: covp.Platform) -> None:
    program = covp.compile("cifar10", platform)
    seen = set()
    with covp.Session(platform) as session:
        graph = session.load(program)
        for seed in range(INPUTS):
            rng = np.random.default_rng(seed)
            x = rng.integers(-128, 128, (1, 32, 32, 3)).astype(np.int8)
            output = graph.run(x)
            np.testing.assert_array_equal(output, program.reference([x])[0])
            seen.add(np.asarray(output).tobytes())
    assert len(seen) == INPUTS
