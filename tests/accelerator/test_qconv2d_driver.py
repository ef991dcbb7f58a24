"""The driver's C on emulated cores, with the model on the bus, against the numpy oracle."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.accel_backends.qconv2d.backend import register_image
from covp.accelerator.call import Constant
from covp.accelerator.registry import find_backend
from covp.chip.platform_file import load_platform
from covp.codegen.offload import checked_driver
from covp.errors import DeviceFault
from covp.graph.attributes import Padding
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.graph.typed_convolution import QuantizedConv2D
from covp.hardware.job_timing import UnitTiming
from covp.peripherals.qconv2d import IMAGE
from covp.runtime.module import Module
from covp.runtime.session import Session

BASE = 0x7000_0000


@dataclass
class Bench:
    """A session with the accelerator on the bus and its driver loaded."""

    session: Session
    driver: Module

    def run(self, job: QuantizedConv2D, x: NDArray[np.int8], requantize: bool) -> NDArray[np.int_]:
        """One job through the driver; operands and the result are tensors in RAM."""
        session = self.session
        kept = []
        words = []
        image = register_image(job, requantize)
        for register in IMAGE:
            word = image[register.name]
            if isinstance(word, Constant):
                kept.append(session.tensor(word.data))
                word = kept[-1].address
            words.append(word & 0xFFFFFFFF)
        shape = (job.batch, job.out_height, job.out_width, job.out_channels)
        out = session.tensor(np.zeros(shape, np.int8 if requantize else np.int32))
        table = session.tensor(np.array(words, np.uint32))
        self.driver["qconv2d_run"](table, session.tensor(x), out)
        return out.numpy()


@pytest.fixture(
    scope="module",
    params=[("riscv32", "zig"), ("riscv32", "gcc"), ("cortex-m4", "zig"), ("cortex-m0plus", "gcc")],
    ids="-".join,
)
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    platform, toolchain = request.param
    prefix = load_platform(platform).core.gcc_prefix
    if toolchain == "gcc" and shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"{prefix}gcc is not installed")
    folder = tmp_path_factory.mktemp("driver")
    backend = find_backend("qconv2d")
    for name, text in checked_driver(backend, BASE, None, load_platform(platform)).items():
        (folder / name).write_text(text)
    # -O3: registers that are not volatile would be written after the start bit
    flags = ("-Wall", "-Wextra", "-Werror", "-O3")
    with Session(platform, toolchain=toolchain) as session:
        session.device.attach(backend.make_peripheral(), BASE, "qconv2d")  # type: ignore[attr-defined]
        yield Bench(session, session.load_c(folder / "qconv2d.c", include=[folder], flags=flags))


small = st.integers(1, 3)
pairs = st.tuples(small, small)
stored = st.integers(-128, 127)


@st.composite
def jobs(draw: st.DrawFn) -> QuantizedConv2D:
    kernel, stride, dilation, out = (draw(pairs) for _ in range(4))
    pad = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    channels, outputs = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    clamp = sorted((draw(stored), draw(stored)))
    return QuantizedConv2D(
        batch=draw(st.integers(1, 2)),
        in_height=draw(st.integers(1, 6)),
        in_width=draw(st.integers(1, 6)),
        in_channels=channels,
        out_height=out[0],
        out_width=out[1],
        out_channels=outputs,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        padding=Padding(top=pad[0], left=pad[1]),
        depthwise=False,
        depth_multiplier=1,
        input_zero_point=draw(stored),
        output_zero_point=draw(stored),
        weights=random.integers(-128, 128, (outputs, *kernel, channels)).astype(np.int8),
        bias=random.integers(-(10**5), 10**5, outputs).astype(np.int32),
        multiplier=random.integers(2**30, 2**31, outputs).astype(np.int32),
        shift=random.integers(-14, 3, outputs).astype(np.int32),
        clamp=(clamp[0], clamp[1]),
    )


def sums(job: QuantizedConv2D, x: NDArray[np.int8]) -> NDArray[np.int32]:
    """int64 tap by tap over a padded image."""
    need = [
        (out - 1) * step + (taps - 1) * spread + 1
        for out, step, taps, spread in zip(
            (job.out_height, job.out_width), job.stride, job.kernel, job.dilation, strict=True
        )
    ]
    image = np.zeros((job.batch, need[0] + 16, need[1] + 16, job.in_channels), np.int64)
    top, left = job.padding.top, job.padding.left
    image[:, top : top + job.in_height, left : left + job.in_width] = (
        x.astype(np.int64) - job.input_zero_point
    )[:, : image.shape[1] - top, : image.shape[2] - left]
    total = np.zeros((job.batch, job.out_height, job.out_width, job.out_channels), np.int64)
    for ky, kx in np.ndindex(*job.kernel):
        rows = np.arange(job.out_height) * job.stride[0] + ky * job.dilation[0]
        columns = np.arange(job.out_width) * job.stride[1] + kx * job.dilation[1]
        taps = image[:, rows][:, :, columns]
        total += np.einsum("nhwc,oc->nhwo", taps, job.weights[:, ky, kx].astype(np.int64))
    return np.asarray(total + job.bias, np.int32)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(job=jobs(), requantize=st.booleans(), seed=st.integers(0, 99))
def test_driver_and_model_give_the_oracle_to_the_bit(
    bench: Bench, job: QuantizedConv2D, requantize: bool, seed: int
) -> None:
    shape = (job.batch, job.in_height, job.in_width, job.in_channels)
    x = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    want = sums(job, x)
    if requantize:
        scaled = multiply_by_quantized_multiplier(want, job.multiplier, job.shift)
        want = np.clip(scaled + job.output_zero_point, *job.clamp).astype(np.int8)
    np.testing.assert_array_equal(bench.run(job, x, requantize), want)


PLAIN = QuantizedConv2D(
    batch=1, in_height=4, in_width=4, in_channels=1, out_height=4, out_width=4, out_channels=1,
    kernel=(1, 1), stride=(1, 1), dilation=(1, 1), padding=Padding(), depthwise=False,
    depth_multiplier=1, input_zero_point=0, output_zero_point=0,
    weights=np.ones((1, 1, 1, 1), np.int8), bias=np.zeros(1, np.int32),
    multiplier=np.full(1, 2**30, np.int32), shift=np.ones(1, np.int32), clamp=(-128, 127),
)  # fmt: skip


def test_a_call_costs_the_same_few_instructions_whatever_the_job(bench: Bench) -> None:
    x = np.zeros((1, 4, 4, 1), np.int8)
    device = bench.session.device

    def instructions(job: QuantizedConv2D) -> int:
        bench.run(job, x, True)
        before = device.instructions  # type: ignore[attr-defined]
        bench.run(job, x, True)
        return device.instructions - before  # type: ignore[attr-defined,no-any-return]

    cost = instructions(PLAIN)
    wide = replace(
        PLAIN,
        out_channels=64,
        weights=np.ones((64, 1, 1, 1), np.int8),
        bias=np.zeros(64, np.int32),
        multiplier=np.full(64, 2**30, np.int32),
        shift=np.ones(64, np.int32),
    )
    assert instructions(wide) == cost
    assert cost < 200, "runtime's task included"


def test_a_job_moves_the_core_clock_by_its_cycles_and_no_instruction(bench: Bench) -> None:
    x = np.zeros((1, 4, 4, 1), np.int8)
    device = bench.session.device
    spent = []
    for startup in (100, 100_100):
        unit: Any = device.peripherals["qconv2d"][1]  # type: ignore[attr-defined]
        unit.unit_timing = UnitTiming(startup_cycles=startup)
        before = device.cycles, device.instructions  # type: ignore[attr-defined]
        bench.run(PLAIN, x, True)
        spent.append((device.cycles - before[0], device.instructions - before[1]))  # type: ignore[attr-defined]
    assert spent[1][0] - spent[0][0] == 100_000
    assert spent[1][1] == spent[0][1]


def test_a_rejected_job_stops_in_the_driver(bench: Bench) -> None:
    with pytest.raises(DeviceFault, match=r"illegal instruction|breakpoint"):
        bench.run(replace(PLAIN, stride=(0, 1)), np.zeros((1, 4, 4, 1), np.int8), True)
