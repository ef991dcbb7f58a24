"""The tightly coupled unit: its C against its Python model, layers against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp
from covp.accel_backends.cfu.unit import ACCUMULATORS, DOT, LANES, REQUANTIZE, SET, CfuModel
from covp.accelerator.registry import find_backend
from covp.device.virtual import VirtualDevice
from covp.errors import UsageError
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.graph.reference import run_reference
from covp.runtime.session import Session
from covp.testing import ConvCase

words = st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([0, 0x80808080, 0x7F7F7F7F, 2**31]))
shifts = st.integers(-31, 30)
stored = st.integers(-128, 127)


@st.composite
def packed_scales(draw: st.DrawFn) -> int:
    low, high = sorted((draw(stored), draw(stored)))
    parts = (draw(shifts), draw(stored), low, high)
    return sum((part & 0xFF) << 8 * byte for byte, part in enumerate(parts))


steps = st.one_of(
    st.tuples(st.just(SET), st.integers(0, 15), words, words),
    st.tuples(st.just(DOT), st.integers(0, 15), words, words),
    st.tuples(st.just(LANES), st.sampled_from([0, 4, 8, 12]), words, words),
    st.tuples(st.just(REQUANTIZE), st.integers(0, 15), st.integers(0, 2**31 - 1), packed_scales()),
)


def interpreter() -> str:
    """C that executes (what, i, rs1, rs2) quadruples: one case for every encoding."""
    cases = [
        f'case {what * 16 + i}: __asm__ volatile(".insn r 0x0b, {what}, {i}, %0, %1, %2" '
        ': "=r"(r) : "r"(p[2]), "r"(p[3])); break;'
        for what in range(4)
        for i in range(0, ACCUMULATORS, 4 if what == LANES else 1)
    ]
    return (
        "#include <stdint.h>\n"
        "void run(const uint32_t *p, uint32_t *results, int32_t count)\n"
        "{ for (; count > 0; count--, p += 4) { uint32_t r = 0; switch (p[0] * 16 + p[1]) {\n"
        + "\n".join(cases)
        + "\n} *results++ = r; } }\n"
    )


@pytest.fixture(scope="module")
def unit():
    with Session("riscv32") as session:
        device = session.device
        assert isinstance(device, VirtualDevice)
        device.board.add_instructions("cfu", find_backend("cfu").make_peripheral().instructions)
        yield session, session.load_c(interpreter())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=st.lists(steps, min_size=1, max_size=40))
def test_the_emulated_instructions_are_the_model_s(unit, program):
    session, module = unit
    # accumulators keep their values between runs: all are set first
    start = [(SET, i, 7 * i, 0) for i in range(ACCUMULATORS)]
    model = CfuModel()
    wanted = [model.execute(*step) for step in [*start, *program]]
    code = session.tensor(np.array([*start, *program], np.uint32))
    results = session.tensor(np.zeros(len(wanted), np.uint32))
    module["run"](code, results, len(wanted))
    assert results.numpy().tolist() == wanted


@given(st.integers(-(2**31), 2**31 - 1), st.integers(2**30, 2**31 - 1), packed_scales())
def test_the_model_requantizes_as_tflm_does(acc, multiplier, packed_scale):
    shift, zero_point, low, high = (
        int.from_bytes([packed_scale >> 8 * j & 0xFF], "little", signed=True) for j in range(4)
    )
    model = CfuModel()
    model.execute(SET, 3, acc & 0xFFFFFFFF, 0)
    result = model.execute(REQUANTIZE, 3, multiplier, packed_scale)
    scaled = int(multiply_by_quantized_multiplier(acc, multiplier, shift)) + zero_point
    assert result == max(low, min(high, scaled)) & 0xFFFFFFFF


CASES = [
    ConvCase(size=(5, 4), channels=(3, 5), kernel=(3, 3), same=True, bias=True, seed=1),
    ConvCase(size=(6, 6), channels=(8, 9), stride=(2, 2), zero_points=(-7, 30), seed=2),
    ConvCase(size=(9, 5), channels=(5, 17), kernel=(2, 3), dilation=(2, 1), activation="relu"),
    ConvCase(kind="FULLY_CONNECTED", batch=3, channels=(37, 6), bias=True, seed=4),
    ConvCase(kind="FULLY_CONNECTED", channels=(1, 1), output_scale=0.05, seed=5),
    ConvCase(kind="DEPTHWISE_CONV_2D", size=(5, 7), channels=(4, 4), kernel=(3, 3), same=True,
             bias=True, zero_points=(9, -3), seed=6),
    ConvCase(kind="DEPTHWISE_CONV_2D", batch=2, size=(7, 6), channels=(12, 12), kernel=(3, 2),
             stride=(2, 2), same=True, activation="relu6", seed=7),
    ConvCase(kind="DEPTHWISE_CONV_2D", size=(4, 3), channels=(8, 8), kernel=(2, 3), stride=(3, 1),
             zero_points=(-128, 127), seed=8),
    ConvCase(kind="DEPTHWISE_CONV_2D", size=(3, 3), channels=(4, 4), kernel=(5, 5), same=True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.seed}")
def test_layers_match_the_reference(case):
    graph = case.graph()
    program = covp.compile(graph, "riscv32", accelerators=["cfu"])
    assert [layer.target for layer in program.layers] == ["cfu"]
    program = replace(program, flags=(*program.flags, "-Wall", "-Wextra", "-Werror"))
    with covp.Session("riscv32") as session:
        module = session.load(program)
        for _ in range(2):
            out = module.run(*case.inputs())
            np.testing.assert_array_equal(out, run_reference(graph, case.inputs())[0])
        assert session.profile().jobs["cfu"] > 0


def test_slow_instructions_cost_what_they_say():
    case = CASES[0]
    cycles, uses = [], []
    for spec in ("cfu", "cfu:mac_cycles=3"):
        with covp.Session("riscv32") as session:
            module = session.load(covp.compile(case.graph(), "riscv32", [spec]))
            module.run(*case.inputs())
            cycles.append(session.profile().cycles or 0)
            assert isinstance(session.device, VirtualDevice)
            uses.append(session.device.board.instruction_uses("cfu"))
    dots = sum(count for name, count in uses[1].items() if name.startswith("dot"))
    assert uses[0] == uses[1] and dots > 0
    assert cycles[1] - cycles[0] == 2 * dots


def test_only_cores_that_can_have_it_get_it():
    with pytest.raises(UsageError, match=r"cfu is for riscv cores; cortex-m7 has a cortex-m7f"):
        covp.compile(CASES[0].graph(), "cortex-m7", ["cfu"])


def test_unloading_takes_the_instructions_away():
    with covp.Session("riscv32") as session:
        module = session.load(covp.compile(CASES[0].graph(), "riscv32", ["cfu"]))
        module.run(*CASES[0].inputs())
        module.unload()
        assert isinstance(session.device, VirtualDevice)
        with pytest.raises(covp.DeviceError, match="no unit 'cfu'"):
            session.device.board.instruction_uses("cfu")
