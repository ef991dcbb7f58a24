"""The C of offloaded layers, on emulated cores with the accelerator on the bus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.accelerator.call import CCall, Constant, RegisterImage
from covp.accelerator.partition import Placement, partition
from covp.accelerator.registry import find_backend
from covp.chip.cores import find_core
from covp.chip.platform_file import load_platform
from covp.codegen.calls import emit_calls
from covp.codegen.layer import Scratch
from covp.codegen.offload import checked_driver
from covp.errors import AcceleratorError
from covp.graph.attributes import Activation, Conv2D, Padding
from covp.graph.graph import Graph, Op
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.graph.typed_convolution import resolve
from covp.hardware.job_timing import UnitTiming
from covp.runtime.session import Session
from covp.testing.tensors import int8, plain

BASE = 0x7000_0000


def conv_graph(
    seed: int, activation: Activation, output_scale: float = 0.2, stride: int = 1
) -> Graph:
    """3x3 convolution of 9x7x3 into 5 channels, SAME on the top and left."""
    random = np.random.default_rng(seed)
    height, width = -(-9 // stride), -(-7 // stride)
    x = int8("x", (1, 9, 7, 3), 0.05, int(random.integers(-99, 99)))
    scales = random.uniform(0.002, 0.02, 5).astype(np.float32)
    data = random.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8)
    w = int8("w", data.shape, scales, 0, data)
    b = plain("b", (5,), np.int32, random.integers(-3000, 3000, 5).astype(np.int32))
    zero = -128 if activation != "none" else int(random.integers(-50, 50))
    y = int8("y", (1, height, width, 5), output_scale, zero)
    attributes = Conv2D((stride, stride), Padding(1, 1, 1, 1), (1, 1), activation)
    return Graph("g", [x], [y], [Op("CONV_2D", "conv_0", [x, w, b], [y], attributes)])


def reference(op: Op, x: NDArray[np.int8]) -> NDArray[np.int8]:
    """Tap by tap in int64, then TFLM's requantization."""
    job = resolve(op)
    image = np.pad(x.astype(np.int64) - job.input_zero_point, ((0, 0), (1, 9), (1, 9), (0, 0)))
    rows, columns = np.arange(job.out_height), np.arange(job.out_width)
    total = np.zeros((1, job.out_height, job.out_width, job.out_channels), np.int64)
    for ky, kx in np.ndindex(3, 3):
        taps = image[:, rows * job.stride[0] + ky][:, :, columns * job.stride[1] + kx]
        total += taps @ job.weights[:, ky, kx].astype(np.int64).T
    scaled = multiply_by_quantized_multiplier(total + job.bias, job.multiplier, job.shift)
    return np.clip(scaled + job.output_zero_point, *job.clamp).astype(np.int8)


@pytest.mark.costly
@pytest.mark.parametrize("spec", ["qconv2d", "qconv2d:requantize=false"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
def test_an_offloaded_layer_gives_the_oracle_to_the_bit(
    spec: str, platform: str, tmp_path: Path
) -> None:
    backend = find_backend(spec)
    files = checked_driver(backend, BASE, None, load_platform(platform))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = ("-Wall", "-Wextra", "-Werror")
    graphs = [
        conv_graph(0, "relu"),
        conv_graph(1, "none"),
        conv_graph(2, "relu6", stride=2),
        conv_graph(3, "none", output_scale=0.00005),  # shifts to the left
    ]
    with Session(platform) as session:
        session.device.attach(backend.make_peripheral(), BASE, "qconv2d")  # type: ignore[attr-defined]
        for seed, graph in enumerate(graphs):
            (placement,) = partition(graph, [backend]).placements
            code = emit_calls(placement, session.platform.core, "layer")
            assert code.target == "qconv2d"
            layer = session.load_c(
                code.source + '#include "qconv2d.c"\n', include=[tmp_path], flags=flags
            )
            x = np.random.default_rng(seed).integers(-128, 128, graph.inputs[0].shape)
            values = {
                "input": session.tensor(x.astype(np.int8)),
                "output": session.tensor(np.zeros(graph.outputs[0].shape, np.int8)),
            }
            for name, argument in code.arguments.items():
                if isinstance(argument, Scratch):
                    values[name] = session.tensor(np.zeros(argument.nbytes, np.uint8))
            layer["layer"](*(values[name] for name in code.arguments))
            want = reference(graph.ops[0], x.astype(np.int8))
            np.testing.assert_array_equal(values["output"].numpy(), want)


def layer(steps: object) -> str:
    """The C of a layer that a backend lowers to ``steps``."""
    graph = conv_graph(0, "relu")
    backend = find_backend("qconv2d")
    vars(backend)["lower"] = lambda match: steps
    (placement,) = partition(graph, [backend]).placements
    assert isinstance(placement, Placement)
    return emit_calls(placement, find_core("rv32imc"), "f").source


def test_arguments_become_readable_c() -> None:
    table = Constant("table", np.array([1, -2], np.int16))
    again = Constant("table", np.array([3], np.int8))
    words = RegisterImage("job", (("TABLE", table), ("MINUS", -1)))
    source = layer(CCall("go", "go.h", (words, table, again, 7, 0.5, True)))
    assert '#include "go.h"' in source
    assert "static const int16_t table[2]" in source
    assert "static const int8_t table_2[1]" in source
    assert "(uintptr_t)table, /* TABLE */" in source
    assert "0xffffffff, /* MINUS */" in source
    assert "    go(job, table, table_2, 7, 0x1.0000000000000p-1f, 1);\n" in source


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (None, "must return a CCall or several, not None"),
        ([], "must return a CCall or several"),
        (["go()"], "'go\\(\\)', which is not a CCall"),
        (CCall("go", "go.h", ("text",)), "'text' cannot be passed"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_lowering_names_the_accelerator_and_the_layer(steps: object, reason: str) -> None:
    with pytest.raises(AcceleratorError, match=f"accelerator qconv2d, layer conv_0: .*{reason}"):
        layer(steps)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("qconv2d:max_stride=1", "stride 2; at most 1"),
        ("qconv2d", None),
    ],
)
def test_the_paper_s_stride_limit_is_a_parameter(spec: str, reason: str | None) -> None:
    split = partition(conv_graph(0, "relu", stride=2), [find_backend(spec)])
    assert [r.reason for r in split.refusals] == ([reason] if reason else [])


def test_what_is_no_quantized_convolution_is_rejected_with_the_value_seen() -> None:
    backend = find_backend("qconv2d")

    def reasons(change: str) -> list[str]:
        graph = conv_graph(0, "relu")
        op = graph.ops[0]
        if change == "type":
            op.input(0).dtype = np.dtype(np.int16)
        elif change == "groups":
            op.input(0).shape = (1, 9, 7, 6)
        elif change == "zero point":
            op.input(1).quantization.zero_point[2] = 1  # type: ignore[union-attr]
        elif change == "width":
            op.input(0).shape = (1, 9, 70000, 3)
        elif change == "kind":
            op.kind = "TANH"
        elif change == "computed":
            op.input(1).data = None
        return [refusal.reason for refusal in partition(graph, [backend]).refusals]

    assert reasons("type") == ["int16 x int8 -> int8; only int8 x int8 -> int8"]
    assert reasons("groups") == ["groups 2; at most 1"]
    assert "zero point" in reasons("zero point")[0]
    assert reasons("width") == ["input width 70000; at most 65535"]
    assert reasons("kind") == ["operator TANH; only CONV_2D, DEPTHWISE_CONV_2D"]
    assert reasons("computed") == ["CONV_2D whose inputs fit no pattern (qconv2d)"]


def test_the_backend_declares_what_its_model_takes() -> None:
    backend = find_backend("qconv2d:macs_per_cycle=4,startup_cycles=0")
    unit = backend.make_peripheral()
    assert unit.unit_timing == UnitTiming(macs_per_cycle=4, startup_cycles=0)
    plain, default = backend.peripheral_class()(), find_backend("qconv2d").make_peripheral()
    settings = [
        {name: value for name, value in vars(unit).items() if name not in ("interrupt", "requests")}
        for unit in (plain, default)
    ]
    assert settings[0] == settings[1], "the defaults of the two agree"
