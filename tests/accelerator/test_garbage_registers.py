"""What others left in a unit's registers changes no result: drivers write all that a job needs."""

from __future__ import annotations

import random

import numpy as np
import pytest

import covp

SEEDS = 30


@pytest.mark.costly
@pytest.mark.parametrize(
    "model, accelerator", [("toycar", "gemm"), ("resnet", "gemm"), ("resnet", "qconv2d")]
)
@pytest.mark.parametrize("platform", ["riscv32", "stm32l4r5"])
def test_inference_after_random_values(model: str, accelerator: str, platform: str) -> None:
    program = covp.compile(covp.load_model(model), platform, accelerators=[accelerator])
    draw = random.Random(f"{model} {accelerator}")
    with covp.Session(platform) as session:
        graph = session.load(program)
        _, unit = session.device.abilities.hardware.peripherals[accelerator]  # type: ignore[union-attr]
        tensor = program.inputs[0]
        x = np.random.default_rng(0).integers(-128, 128, tensor.shape, np.int8)
        expected = graph.run(x)
        fresh = session.snapshot()
        offsets = range(4, 0x80, 4)  # not CTRL, which starts a job
        for _ in range(SEEDS if model == "toycar" else 5):
            session.restore(fresh)
            for offset in draw.sample(offsets, 12):
                try:
                    unit.write_register(offset, 4, draw.choice((draw.getrandbits(32), 1)))
                except covp.CovpError:  # none, or one that is read only
                    continue
            assert np.array_equal(graph.run(x), expected)
