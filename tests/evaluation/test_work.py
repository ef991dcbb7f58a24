"""Coverage is what the units did: a driver that computes in software is seen and rejected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from covp.accelerator import (
    Accelerator,
    AcceleratorBackend,
    CCall,
    Job,
    Limit,
    number,
    result,
    table,
    tensor,
)
from covp.codegen.program import ProgramLayer, ProgramTensor
from covp.errors import AcceleratorError
from covp.evaluation import build, compare, run
from covp.graph.pattern import Match, Pattern, op
from covp.hardware.arithmetic import requantize
from covp.hardware.custom_instruction import CustomInstruction, InstructionUnit
from covp.hardware.job_timing import JobTiming, Traffic
from covp.hardware.job_unit import JobRecord
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.runtime.call import of_instructions, of_jobs

SOFTWARE = """
static int32_t scaled(int32_t value, int32_t multiplier, int32_t shift)
{
    int32_t right = shift < 0 ? -shift : 0;
    int64_t product = (int64_t)value * multiplier;
    int64_t high = (product + (1ll << 30)) >> 31;
    int64_t mask = (1ll << right) - 1, rest = high & mask;
    return (int32_t)((high >> right) + (rest > (mask >> 1) + (high < 0)));
}

static void software(const uintptr_t *job, const int8_t *x, int8_t *y)
{
    const int8_t *weights = (const int8_t *)job[0];
    const int32_t *bias = (const int32_t *)job[1];
    const int32_t *multiplier = (const int32_t *)job[2], *shift = (const int32_t *)job[3];
    int32_t depth = (int32_t)job[5], outputs = (int32_t)job[6];
    for (int32_t o = 0; o < outputs; o++) {
        int32_t sum = bias[o];
        for (int32_t i = 0; i < depth; i++)
            sum += (x[i] - (int32_t)job[7]) * weights[o * depth + i];
        int32_t value = scaled(sum, multiplier[o], shift[o]) + (int32_t)job[8];
        value = value < (int32_t)job[9] ? (int32_t)job[9] : value;
        y[o] = (int8_t)(value > (int32_t)job[10] ? (int32_t)job[10] : value);
    }
}

"""


class Dense(Accelerator):
    """Fully connected layers of one image."""

    name = "dense"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda j: j.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda j: j.OUT_CHANNELS * j.IN_CHANNELS),
        table("BIAS", "int32", lambda j: j.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda j: j.OUT_CHANNELS),
        table("SHIFT", "int32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda j: j.OUT_CHANNELS),
        number("BATCH", 1, 1),
        number("IN_CHANNELS", 1, 1024),
        number("OUT_CHANNELS", 1, 1024),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def accepts(self, layer: Any) -> list[Limit]:
        return [Limit("type", type(layer).__name__, one_of=("QuantizedConv2D",))]

    def compute(self, job: Any) -> NDArray[Any]:
        x = job.INPUT.astype(np.int64) - job.INPUT_ZERO_POINT
        sums = job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).astype(np.int64) @ x + job.BIAS
        low, high = job.LOW, job.HIGH
        return requantize(sums[None], job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, low, high)

    def macs(self, job: Any) -> int:
        return int(job.IN_CHANNELS * job.OUT_CHANNELS)


class Lazy(Dense):
    """Its driver gives the unit one job of ten and computes the others itself."""

    condition: ClassVar[str] = "turn++ % 10 != 0"

    def driver(self, base: int) -> Mapping[str, str]:
        files = dict(super().driver(base))
        before, found, after = files["dense.c"].partition("void dense_run(")
        head, brace, body = after.partition("{\n")
        call = "software(image, input_address, output_address);"
        lazy = f"    static uint32_t turn;\n    if ({self.condition}) {{ {call} return; }}\n"
        assert found and brace
        files["dense.c"] = before + SOFTWARE + found + head + brace + lazy + body
        return files


class Silent(Lazy):
    """The same, and it does not count its multiply-accumulates."""

    def macs(self, job: Any) -> int:
        return 0


@pytest.mark.costly
@pytest.mark.parametrize("planted", [Lazy, Silent])
def test_a_driver_that_computes_in_software_is_not_offloading(planted: type[Lazy]) -> None:
    made = build("toycar", "riscv32", [planted()])
    result = run(made)
    assert result.matches_reference and result.profile.jobs == {"dense": 1}
    first = made.program.layers[0].macs / sum(layer.macs for layer in made.program.layers)
    assert made.planned_coverage == 1
    assert result.mac_coverage == pytest.approx(first) and first < 0.5
    shares = [entry.work.share for entry in result.profile.layers if entry.work]
    assert shares == [1.0] + [0.0] * 9
    demanding = build("toycar", "riscv32", [planted()], require_offload=["FULLY_CONNECTED"])
    with pytest.raises(AcceleratorError, match=r"has to be offloaded: dense reports 0% of it in 0"):
        run(demanding)


@pytest.mark.costly
def test_its_honest_twin_passes() -> None:
    made = build("toycar", "riscv32", [Dense()], require_offload=["FULLY_CONNECTED"])
    result = run(made)
    assert result.matches_reference and result.mac_coverage == 1
    for entry in result.profile.layers:
        assert entry.work is not None
        assert (entry.work.jobs, entry.work.macs) == (1, entry.layer.macs)
        assert entry.work.bytes_read is not None and entry.work.bytes_read > entry.layer.macs


@pytest.mark.costly
def test_a_comparison_shows_what_was_done() -> None:
    found = compare("toycar", "riscv32", [Lazy()])
    assert found.mac_coverage is not None and 0 < found.mac_coverage < 0.5
    assert found.record().mac_coverage == found.mac_coverage


class Adder(Peripheral):
    """Adds floats at once; it has no jobs, and so reports nothing."""

    registers = RegisterMap(
        *(Register(name, 4 * place) for place, name in enumerate(("A", "B", "Y", "COUNT"))),
        Register("GO", 0x10, on_write="go"),
    )

    def go(self, value: int) -> None:
        a, b = (
            np.frombuffer(self.bus.read(self.values[name], 4 * self.values["COUNT"]), np.float32)
            for name in "AB"
        )
        self.bus.write(self.values["Y"], (a + b).tobytes())


class Adding(AcceleratorBackend):
    """ADD of floats on a model without jobs."""

    name = "adding"
    patterns = (Pattern("add", op("ADD")),)
    peripheral = Adder

    def supports(self, match: Match) -> bool:
        return match.op.output.dtype == np.float32

    def make_peripheral(self) -> Adder:
        return Adder()

    def lower(self, match: Match) -> CCall:
        tensors = match.op.input(0), match.op.input(1), match.op.output
        return CCall("adding_run", "adding.h", (*tensors, match.op.output.size))

    def driver(self, base: int) -> dict[str, str]:
        head = "void adding_run(const float *a, const float *b, float *y, unsigned n)"
        stores = "".join(f"r[{i}] = (unsigned){value}; " for i, value in enumerate("abyn"))
        body = f"{{ volatile unsigned *r = (volatile unsigned *){base}u; {stores}r[4] = 1u; }}"
        return {"adding.h": f"{head};\n", "adding.c": f'#include "adding.h"\n{head}\n{body}\n'}


def test_a_model_without_jobs_reports_nothing_and_not_zero(tmp_path: Path) -> None:
    x, y, z = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 8]) for n in "xyz")
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "add", [x, y], [z])
    opset = [helper.make_opsetid("", 13)]
    file = tmp_path / "add.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), file)
    found = compare(file, "riscv32f", [Adding()], allow_slower=True)
    assert found.accelerated.matches_reference
    assert [layer.target for layer in found.accelerated.program.layers] == ["adding"]
    assert found.mac_coverage is None and found.record().mac_coverage is None
    assert found.alone.mac_coverage == 0
    assert "not reported" in found._repr_html_()


class Instant(Dense):
    """All in a cycle."""

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return JobTiming(1, 0)


class Undeclared(Instant):
    """The same, and it does not say what it has."""

    def hardware_size(self) -> None:
        return None


class Boastful(Dense):
    """Ten times the work."""

    def macs(self, job: Any) -> int:
        return 10 * super().macs(job)

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return self.unit_timing().job(super().macs(job), nbytes)


@pytest.mark.parametrize(("unit", "most"), [(Instant, 16), (Undeclared, 2048)])
def test_a_time_that_no_unit_can_have_is_said(unit: type[Dense], most: int) -> None:
    """Of toycar's layers of 16,384 to 81,920 MACs; an honest time, or a declared size, is fine."""
    made = build("toycar", "riscv32", [unit()])
    (warning,) = [text for text in run(made, check="none").warnings if "cannot be right" in text]
    first = made.program.layers[0]
    assert f"{first.macs:,} MACs of {first.name} in 1 cycles are {first.macs:,} a cycle" in warning
    assert f" {most}; " in warning
    honest = run(build("toycar", "riscv32", [Dense({"macs_per_cycle": 4096})]), check="none")
    assert not any("cannot be right" in text for text in honest.warnings)


def test_more_macs_than_the_layer_has_are_shown_as_such() -> None:
    result = run(build("toycar", "riscv32", [Boastful()]), check="none")
    assert result.mac_coverage == pytest.approx(10)
    (warning,) = [text for text in result.warnings if "reports" in text]
    assert "1000% of those that the layer has" in warning and "likewise 9 more" in warning


@pytest.mark.parametrize("accelerators", [["qconv2d"], ["gemm", "vector"], ["cfu"]])
def test_the_accelerators_of_this_repository_do_all_of_their_layers(
    accelerators: list[str],
) -> None:
    result = run(build("kws", "riscv32", accelerators), check="output")
    assert not any("cannot be" in text or "reports" in text for text in result.warnings)
    assert result.mac_coverage == result.build.planned_coverage > 0.8
    assert all(e.work.share == 1 for e in result.profile.layers if e.work is not None)


def layer(macs: int, nbytes: int) -> ProgramLayer:
    output = ProgramTensor("y", (nbytes,), np.dtype(np.int8), 0)
    return ProgramLayer(0, "l", "ADD", "unit", macs, "f", outputs=(output,), work=macs)


def job(macs: int | None, stored: int) -> JobRecord:
    return JobRecord(2, 0, 9, JobTiming(9, 0), 0, {}, Traffic(3, stored), macs, stored)


@pytest.mark.parametrize(
    ("macs", "nbytes", "jobs", "share"),
    [
        (100, 10, [(40, 4), (60, 6)], 1.0),
        (100, 10, [(40, 10)], 0.4),
        (100, 10, [(128, 10)], 1.28),  # more than it has, as with padding
        (0, 10, [(5, 5)], 0.5),  # nothing to multiply: bytes count
        (100, 10, [(None, 4)], 0.4),  # a unit that does not say
        (100, 10, [], 0.0),
    ],
)
def test_the_share_of_a_layer(
    macs: int, nbytes: int, jobs: list[tuple[int | None, int]], share: float
) -> None:
    assert of_jobs(layer(macs, nbytes), [job(*one) for one in jobs]).share == share


def test_the_share_of_a_unit_in_the_core() -> None:
    def unit(macs: int) -> InstructionUnit:
        dot = CustomInstruction("dot", 0, 0, lambda a, b: a, "a", macs=macs)
        return InstructionUnit((dot,))

    layers = [layer(100, 10), layer(300, 10)]
    assert of_instructions(layers, unit(4), {"dot": 25}).share == 0.25
    assert of_instructions(layers, unit(4), {"dot": 999}).share == 1
    assert of_instructions(layers, unit(0), {"dot": 1}).share == 1
    assert of_instructions(layers, unit(0), {"dot": 0}).share == 0
