"""Whole models on the virtual cores: every output bit is the reference's.

The official files where COVP_MODEL_DIR names them, else synthetic models of the same topology.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import covp
from covp.errors import CapacityError
from covp.evaluation import recorded_schedules

MODELS = ["resnet", "kws", "vww", "toycar", "sww"]
PLATFORMS = ["riscv32", "cortex-m4", "cortex-m7", "cortex-m0plus", "cortex-m33", "riscv32f"]
ACCELERATORS: list[tuple[str, ...]] = [(), ("qconv2d",), ("qconv2d:requantize=false",)]
COMPILERS = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}


def wrong_outputs(
    model: str, platform_name: str, toolchain: str, accelerators: tuple[str, ...], inputs: int
) -> int:
    """How many of the random inputs give another output than the reference."""
    platform = covp.load_platform(platform_name)
    compiler = COMPILERS[platform.core.architecture]
    if toolchain == "gcc" and shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    program = covp.compile(
        model,
        platform,
        accelerators,
        allow_unused=True,
        schedules=recorded_schedules(platform, toolchain=toolchain),
    )
    wrong = 0
    with covp.Session(platform, toolchain=toolchain) as session:
        try:
            graph = session.load(program)
        except CapacityError as error:
            pytest.skip(f"does not fit: {error}")
        for seed in range(inputs):
            rng = np.random.default_rng(seed)
            x = [rng.integers(-128, 128, t.shape).astype(t.dtype) for t in program.inputs]
            wrong += not np.array_equal(graph.run(*x), program.reference(x)[0])
    return wrong


@pytest.mark.costly
@pytest.mark.parametrize("accelerators", ACCELERATORS[:2], ids=["alone", "qconv2d"])
@pytest.mark.parametrize("platform", PLATFORMS[:4])
@pytest.mark.parametrize("model", ["resnet", "kws", "toycar"])
def test_bits(model: str, platform: str, accelerators: tuple[str, ...]) -> None:
    assert wrong_outputs(model, platform, "zig", accelerators, 2) == 0


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@pytest.mark.parametrize("model", ["kws", "vww", "sww"])
def test_bits_with_gcc(model: str, platform: str) -> None:
    assert wrong_outputs(model, platform, "gcc", (), 2) == 0


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", ["stm32h743", "nrf52840"])
@pytest.mark.parametrize("model", ["resnet", "kws"])
def test_bits_on_chips_with_several_memories(model: str, platform: str, toolchain: str) -> None:
    assert wrong_outputs(model, platform, toolchain, (), 1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("accelerators", ACCELERATORS, ids=["alone", "qconv2d", "sums"])
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("model", MODELS)
def test_bits_of_everything(
    model: str, platform: str, toolchain: str, accelerators: tuple[str, ...]
) -> None:
    assert wrong_outputs(model, platform, toolchain, accelerators, 20) == 0
