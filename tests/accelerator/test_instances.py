"""Several instances of one accelerator in a program, each with a name and parameters of its own."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.accelerator.registry import find_backend, find_backends
from covp.errors import AcceleratorError, UsageError
from covp.evaluation import evaluate
from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.reference import run_reference

INT8 = np.dtype(np.int8)
SIZES = {"small": 8, "big": 16}
FAST = "bytes_per_cycle=64"


def activation(name: str, *shape: int) -> Tensor:
    quantization = Quantization(np.array([0.05], np.float32), np.array([3], np.int32))
    return Tensor(name, shape, INT8, quantization)


def convolution(name: str, x: Tensor, y: Tensor, kernel: int) -> Op:
    random = np.random.default_rng(len(name))
    shape = (y.shape[-1], kernel, kernel, x.shape[-1])
    scales = random.uniform(0.002, 0.02, shape[0]).astype(np.float32)
    per_channel = Quantization(scales, np.zeros(shape[0], np.int32))
    w = Tensor("w", shape, INT8, per_channel, random.integers(-127, 128, shape, np.int8))
    pad = Padding(kernel // 2, kernel // 2, kernel // 2, kernel // 2)
    return Op("CONV_2D", name, [x, w, None], [y], Conv2D((1, 1), pad))


def network() -> Graph:
    """A wide convolution, one of a single small tile, a wide one."""
    x, a = activation("x", 1, 12, 12, 16), activation("a", 1, 12, 12, 8)
    b, y = activation("b", 1, 12, 12, 4), activation("y", 1, 12, 12, 32)
    ops = [
        convolution("wide", x, a, 3),
        convolution("narrow", a, b, 1),
        convolution("last", b, y, 5),
    ]
    for index, op in enumerate(ops):
        op.index = index
    return Graph("network", [x], [y], ops)


def image() -> NDArray[np.int8]:
    return np.random.default_rng(0).integers(-128, 128, (1, 12, 12, 16), np.int8)


def jobs_by_name(accelerators: Sequence[str], platform: str = "riscv32") -> dict[str, int]:
    """The jobs of each instance in an inference whose outputs match the reference."""
    graph = network()
    program = covp.compile(graph, platform, accelerators, allow_unused=True)
    program = pickle.loads(pickle.dumps(program))
    with covp.Session(platform) as session:
        module = session.load(program)
        np.testing.assert_array_equal(module.run(image()), run_reference(graph, [image()])[0])
        jobs = dict(module.profile().jobs)
    assert [instance.name for instance in program.accelerators] == list(jobs)
    return jobs


@pytest.mark.parametrize("wait", ["poll", "sleep"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_the_cheaper_instance_gets_a_layer(wait: str, platform: str) -> None:
    """Of a layer of one tile the smaller array is filled and drained sooner."""
    specs = [f"{name}=gemm:size={size},{FAST},wait={wait}" for name, size in SIZES.items()]
    program = covp.compile(network(), platform, specs)
    assert [layer.target for layer in program.layers] == ["big", "small", "big"]
    assert jobs_by_name(specs, platform) == {"small": 1, "big": 2}
    assert {"small.c", "small_place.h", "big.h", "big_registers.h"} <= set(program.sources)
    assert not any("gemm" in file.lower() for file in program.sources)
    assert (
        program.refusals[0].accelerator,
        program.refusals[0].reason.partition(",")[0],
    ) == ("small", "big needs fewer cycles")


def test_limits_force_a_layer_to_an_instance() -> None:
    specs = [f"tiny=gemm:size=16,scratchpad=500,{FAST}", f"gemm:size=1,{FAST}"]
    program = covp.compile(network(), "riscv32", specs)
    assert [layer.target for layer in program.layers] == ["gemm", "tiny", "tiny"]
    assert min(jobs_by_name(specs).values()) > 0


@pytest.mark.parametrize(
    "pair", [("one=qconv2d", "qconv2d:macs_per_cycle=64"), ("qconv2d", "qconv2d:depthwise=false")]
)
def test_two_units_with_drivers_of_their_own(pair: Sequence[str]) -> None:
    program = covp.compile(network(), "riscv32", pair, allow_unused=True)
    names = [instance.name for instance in program.accelerators]
    assert names == (["one", "qconv2d"] if "=" in pair[0] else ["qconv2d", "qconv2d_2"])
    assert sum(jobs_by_name(pair).values()) == 3


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["gemm"], ["gemm"]),
        (["gemm", "gemm", "gemm:size=4"], ["gemm", "gemm_2", "gemm_3"]),
        (["gemm", "gemm_2=gemm", "gemm"], ["gemm", "gemm_2", "gemm_3"]),
        (["gemm", "gemm=qconv2d"], ["gemm_2", "gemm"]),
        (["GEMM=dma", "gemm"], ["GEMM", "gemm_2"]),
        ([" a = gemm : size=4"], ["a"]),
    ],
)
def test_names(specs: Sequence[str], names: Sequence[str]) -> None:
    backends = find_backends(specs)
    assert [backend.name for backend in backends] == names
    for backend in backends:
        again = find_backend(backend.spec)
        assert (again.name, again.values) == (backend.name, backend.values)
        assert pickle.loads(pickle.dumps(backend)).spec == backend.spec


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["a=gemm", "a=dma"], "two accelerators are named a"),
        (["a=gemm", "A=dma"], "two accelerators are named a"),
        (["my-unit=gemm"], "'my-unit': its name becomes a part of C names"),
        (["=gemm"], "'': its name becomes a part of C names"),
        (["cpu=gemm"], "'cpu': cpu is the core itself"),
        (["a=b=gemm"], "unknown accelerator 'b=gemm'"),
    ],
)
def test_names_that_cannot_be(specs: Sequence[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_backends(specs)


def test_a_unit_that_a_core_has_once() -> None:
    with pytest.raises(AcceleratorError, match=r"cfu_2: the program has a file cfu"):
        covp.compile(network(), "riscv32", ["cfu", "cfu"], allow_unused=True)


def test_another_size_of_an_instance_is_another_unit() -> None:
    with covp.Session("riscv32") as session:
        session.load(covp.compile(network(), "riscv32", ["gemm"]))
        with pytest.raises(UsageError, match="gemm at 0x70000000: gemm is there already"):
            session.load(covp.compile(network(), "riscv32", ["gemm:size=16"]))


@pytest.mark.costly
def test_an_evaluation_reports_each_instance() -> None:
    result = evaluate("resnet", "riscv32", ["small=gemm", "big=gemm:size=16,scratchpad=1000"])
    assert result.matches_reference
    jobs = result.record().accelerator_jobs
    assert set(jobs) == {"small", "big"} and min(jobs.values()) > 0
