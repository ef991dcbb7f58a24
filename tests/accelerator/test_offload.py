"""Whole programs with layers on the accelerator: the same bits as without it, and who runs what."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.chip.platform_file import load_platform
from covp.errors import PlatformError, UsageError
from covp.graph.attributes import Conv2D, DepthwiseConv2D, Padding
from covp.graph.graph import Graph, Op, Tensor
from covp.testing.tensors import int8, plain


def weights(random: np.random.Generator, shape: tuple[int, ...], axis: int) -> Tensor:
    scales = random.uniform(0.002, 0.02, shape[axis]).astype(np.float32)
    data = random.integers(-127, 128, shape).astype(np.int8)
    return int8(f"w{random.integers(1 << 30)}", shape, scales, 0, data, axis)


def bias(random: np.random.Generator, channels: int) -> Tensor:
    data = random.integers(-3000, 3000, channels).astype(np.int32)
    return plain(f"b{random.integers(1 << 30)}", (channels,), np.int32, data)


def network() -> Graph:
    """3x3 convolution, 3x3 depthwise, 1x1 convolution with stride 2."""
    r = np.random.default_rng(5)
    x = int8("x", (1, 8, 6, 3), 0.05, -4)
    a = int8("a", (1, 8, 6, 8), 0.1, -128)
    b = int8("b", (1, 8, 6, 8), 0.2, 10)
    y = int8("y", (1, 4, 3, 5), 0.3, -3)
    same = Padding(1, 1, 1, 1)
    ops = [
        Op("CONV_2D", "first", [x, weights(r, (8, 3, 3, 3), 0), bias(r, 8)], [a],
           Conv2D((1, 1), same, (1, 1), "relu"), 0),
        Op("DEPTHWISE_CONV_2D", "depthwise", [a, weights(r, (1, 3, 3, 8), 3), bias(r, 8)], [b],
           DepthwiseConv2D((1, 1), same), 1),
        Op("CONV_2D", "last", [b, weights(r, (5, 1, 1, 8), 0), None], [y],
           Conv2D((2, 2), Padding()), 2),
    ]  # fmt: skip
    return Graph("network", [x], [y], ops)


SPLITS = {
    "qconv2d": ["qconv2d", "qconv2d", "qconv2d"],
    "qconv2d:wait=sleep": ["qconv2d", "qconv2d", "qconv2d"],
    "qconv2d:requantize=false": ["qconv2d", "qconv2d", "qconv2d"],
    "qconv2d:requantize=false,depthwise=false,max_stride=1": ["qconv2d", "cpu", "cpu"],
}


@pytest.mark.parametrize("spec", SPLITS)
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
def test_the_bits_are_those_of_the_reference_and_instructions_are_saved(
    spec: str, platform: str
) -> None:
    graph = network()
    alone = covp.compile(graph, platform)
    program = covp.compile(graph, platform, accelerators=[spec])
    assert [layer.target for layer in program.layers] == SPLITS[spec]
    assert [(a.name, a.spec) for a in program.accelerators] == [("qconv2d", spec)]
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    (want,) = program.reference([x])
    instructions: list[int] = []
    for candidate in (alone, program):
        with covp.Session(platform) as session:
            module = session.load(candidate)
            np.testing.assert_array_equal(module.run(x), want)
            np.testing.assert_array_equal(module.run(x), want)
            instructions.append(module.profile().instructions or 0)
    assert 0 < instructions[1] < instructions[0]


def test_refusals_name_layer_constraint_and_value() -> None:
    program = covp.compile(
        network(), "riscv32", accelerators=["qconv2d:max_stride=1,depthwise=false"]
    )
    assert [(r.layer, r.reason) for r in program.refusals] == [
        ("depthwise", "groups 8; at most 1"),
        ("last", "stride 2; at most 1"),
    ]
    limit = program.refusals[1].limits[0]
    assert (limit.name, limit.value, limit.at_most) == ("stride", 2, 1)
    # 4 x 3 pixels of 5 channels from 8 each, 16 MACs a cycle; 384 + 60 + 40 + 60 bytes, 4 a cycle
    assert program.refusals[1].estimate == 32 + max(30, 136)


def test_an_accelerator_without_a_layer_is_an_error_with_the_closest_reason() -> None:
    graph = network()
    graph.ops = graph.ops[2:]
    graph.inputs = [graph.ops[0].input(0)]
    with pytest.raises(UsageError, match=r"gets no layer of this model.*stride 2; at most 1"):
        covp.compile(graph, "riscv32", accelerators=["qconv2d:max_stride=1"])
    program = covp.compile(
        graph, "riscv32", accelerators=["qconv2d:max_stride=1"], allow_unused=True
    )
    assert [layer.target for layer in program.layers] == ["cpu"]
    with covp.Session("riscv32") as session:
        x = np.zeros((1, 8, 6, 8), np.int8)
        np.testing.assert_array_equal(session.load(program).run(x), program.reference([x])[0])


def test_a_platform_without_a_slot_is_named_with_the_missing_key() -> None:
    from msgspec.structs import replace

    platform = replace(load_platform("riscv32"), accelerators=None)
    with pytest.raises(PlatformError, match=r"accelerators\.base"):
        covp.compile(network(), platform, accelerators=["qconv2d"])


@pytest.mark.parametrize("wait", ["poll", "sleep"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m7", "cortex-m0plus"])
def test_a_longer_job_moves_the_core_s_cycle_count_by_just_that(wait: str, platform: str) -> None:
    graph = network()
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    cycles = []
    for startup in (5000, 5001, 6000, 105_000):
        spec = f"qconv2d:startup_cycles={startup},wait={wait}"
        with covp.Session(platform) as session:
            program = covp.compile(graph, platform, [spec], allow_slower=True)
            session.load(program).run(x)
            cycles.append(session.profile().cycles or 0)
    # three jobs
    assert [after - cycles[0] for after in cycles[1:]] == [3, 3000, 300_000]
