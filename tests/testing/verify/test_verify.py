"""`covp verify`: good accelerators pass it on every core, and each kind of defect is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.accelerator import Accelerator, CCall, Job, Limit, number, result, table, tensor
from covp.accelerator.registry import find_backend
from covp.errors import AcceleratorError, CovpError, ToolchainError, UsageError
from covp.graph.pattern import Match
from covp.hardware.job_unit import AcceptedJob
from covp.testing.verify import ConvCase, Verdict, check
from covp.testing.verify import verify as verify_in_full

pytestmark = pytest.mark.usefixtures("counted_time")

# the layers of models have tests of their own; these are to be short: 100 layers
verify = partial(verify_in_full, models=(), seconds=2)

SPECS = [
    "qconv2d",
    "qconv2d:requantize=false,wait=sleep",
    "gemm:size=4,scratchpad=256,accumulators=256",
    "gemm:wait=sleep,contention=1",
    "vector:buffer=16",
    "vanilla",
    "dma:wait=sleep",
]


@pytest.mark.costly
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "platform",
    ["riscv32", *(pytest.param(p, marks=pytest.mark.slow) for p in ("cortex-m7", "cortex-m0plus"))],
)
def test_the_accelerators_of_this_repository_pass(spec: str, platform: str) -> None:
    verdict = verify(spec, platform, examples=4)
    assert verdict.failure is None, verdict.test
    assert sum(verdict.accepted.values()) > 0
    assert verdict.abuses >= 10


@pytest.mark.costly
def test_a_unit_inside_the_core_is_tried_with_whole_programs() -> None:
    verdict = verify("cfu", "riscv32", examples=4, seconds=0.6)
    assert verdict.failure is None, verdict.test
    assert sum(verdict.accepted.values()) > 0
    assert verdict.abuses == 0


class Fc(Accelerator):
    """Fully connected layers to int32 sums... in int8, without bias, for these tests."""

    name = "fc"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda j: j.BATCH * j.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda j: j.OUT_CHANNELS * j.IN_CHANNELS),
        table("BIAS", "int32", lambda j: j.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda j: j.OUT_CHANNELS),
        table("SHIFT", "int32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda j: j.BATCH * j.OUT_CHANNELS),
        number("BATCH", 1, 64),
        number("IN_CHANNELS", 1, 1024),
        number("OUT_CHANNELS", 1, 1024),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def accepts(self, layer: Any) -> list[Limit]:
        """Not the float ones."""
        return [Limit("type", type(layer).__name__, one_of=("QuantizedConv2D",))]

    def compute(self, job: Any) -> NDArray[Any]:
        """Sums in int64, requantized."""
        from covp.hardware.arithmetic import requantize

        rows = job.INPUT.reshape(job.BATCH, job.IN_CHANNELS).astype(np.int64) - job.INPUT_ZERO_POINT
        sums = (
            rows @ job.WEIGHTS.reshape(job.OUT_CHANNELS, job.IN_CHANNELS).T.astype(np.int64)
            + job.BIAS
        )
        return requantize(sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH)


@pytest.mark.slow
def test_the_one_class_accelerator_of_this_file_is_right() -> None:
    verdict = verify(Fc(), examples=20)
    assert verdict.failure is None, verdict.test
    # all that are within its limits, and no others: one class says both
    assert (
        verdict.accepted["FULLY_CONNECTED"] + sum(verdict.rejected.values())
        == (verdict.tried["FULLY_CONNECTED"])
    )
    assert all(": at least 1 and at most" in reason for reason in verdict.rejected)


class RoundsWrong(Fc):
    """One too much where the sum is large."""

    def compute(self, job: Any) -> NDArray[Any]:
        """Off by one above 100."""
        right = super().compute(job)
        return np.where(right > 100, right - 1, right).astype(np.int8)


class ForgetsARegister(Fc):
    """Its driver leaves INPUT alone."""

    def driver(self, base: int) -> Mapping[str, str]:
        """Without INPUT."""
        files = dict(super().driver(base))
        line = "    FC_INPUT = (uint32_t)(uintptr_t)input_address;\n"
        assert line in files["fc.c"]
        files["fc.c"] = files["fc.c"].replace(line, "    (void)input_address;\n")
        return files


class DoesNotWait(Fc):
    """Its driver returns at once."""

    def driver(self, base: int) -> Mapping[str, str]:
        """Without the polling loop."""
        files = dict(super().driver(base))
        text = files["fc.c"]
        wait = "    covp_job_wait(&FC_CTRL, COVP_POLL);\n"
        assert wait in text
        files["fc.c"] = text.replace(wait, "    covp_fence();\n")
        return files


class WritesTooMuch(Fc):
    """The unit writes one byte past its result."""

    def make_peripheral(self) -> Any:
        """With a store unit that overshoots."""
        unit = super().make_peripheral()
        accept = unit.accept

        def overshoot() -> AcceptedJob:
            job = accept()
            longer = np.append(job.result, np.int8(0))
            return AcceptedJob(job.timing, job.address, longer)

        unit.accept = overshoot  # type: ignore[method-assign]
        return unit


class TakesOverlaps(Fc):
    """The unit accepts a result on top of an operand."""

    def make_peripheral(self) -> Any:
        """With no overlap check."""
        unit = super().make_peripheral()
        inner = unit.accept

        def lenient() -> AcceptedJob:
            self.job.in_place = True
            try:
                return inner()
            finally:
                self.job.in_place = False

        unit.accept = lenient  # type: ignore[method-assign]
        return unit


def _failure(make: Callable[[], Accelerator]) -> Verdict:
    verdict = verify(make(), examples=60)
    assert verdict.failure is not None
    return verdict


@pytest.mark.costly
def test_a_wrong_result_is_found_and_shrunk_to_a_test_that_runs() -> None:
    verdict = _failure(RoundsWrong)
    assert "elements differ from the reference" in str(verdict.failure)
    assert "FULLY_CONNECTED" in verdict.test
    assert all(plain in verdict.test for plain in ("batch=1", "activation='none'", "gap=0"))
    space: dict[str, Any] = {}
    assert f"check('{__file__}:RoundsWrong', case" in verdict.test
    exec(compile(verdict.test, "smallest", "exec"), space)  # what the user would save and run
    with pytest.raises(Exception, match="elements differ"):
        space["test_the_smallest_failing_layer"]()


def test_a_driver_that_does_not_wait_is_a_wrong_result() -> None:
    assert "the driver returned while the unit was busy" in str(_failure(DoesNotWait).failure)


def test_a_job_that_the_unit_rejects_is_a_fault_in_the_driver() -> None:
    failure = str(_failure(ForgetsARegister).failure)
    assert "covp_job_refused" in failure
    assert "rejected its job: address (INPUT: " in failure


def test_a_write_past_the_output_is_damage() -> None:
    verdict = _failure(WritesTooMuch)
    assert "the unit stored 2 bytes" in str(verdict.failure)
    assert "outside the layer's buffers" in str(verdict.failure)


@pytest.mark.costly
def test_an_overlap_that_is_not_rejected_is_reported_with_its_registers() -> None:
    failure = str(_failure(TakesOverlaps).failure)
    assert "OUTPUT on top of" in failure
    assert "not rejected" in failure or "bytes of memory were written" in failure


def test_a_driver_with_a_warning_is_the_compiler_s_message() -> None:
    class Warns(Fc):
        def driver(self, base: int) -> Mapping[str, str]:
            files = dict(super().driver(base))
            return files | {"fc.c": files["fc.c"] + "static int unused;\n"}

    with pytest.raises(ToolchainError, match=r"fc\.c:\d+"):
        verify(Warns())


@pytest.mark.costly
def test_an_accelerator_that_takes_nothing_is_an_error() -> None:
    class Narrow(Fc):
        def accepts(self, layer: Any) -> list[Limit]:
            return [Limit("rows", layer.batch, at_least=1000)]

    with pytest.raises(AcceleratorError, match="took none of"):
        verify(Narrow(), examples=10)


def test_operators_that_nothing_draws_need_cases() -> None:
    class Odd(Fc):
        operators = ("GATHER",)

    with pytest.raises(UsageError, match=r"cases\(\)"):
        verify(Odd())


def test_a_single_layer_can_be_checked() -> None:
    check("gemm", ConvCase(size=(4, 4), channels=(3, 5), kernel=(3, 3), same=True, seed=3))
    with pytest.raises(UsageError, match="does not accept this layer"):
        check("gemm", ConvCase(kind="DEPTHWISE_CONV_2D", channels=(3, 3)))


@pytest.mark.slow
def test_a_printed_test_names_the_accelerator_as_the_user_did() -> None:
    spec = f"{__file__}:RoundsWrong:macs_per_cycle=3"
    assert f"check({spec!r}, case" in verify(spec, examples=60).test
    assert verify(find_backend("gemm:size=4"), examples=1).accelerator == "gemm:size=4"


def test_a_printed_layer_brings_the_imports_of_its_attributes() -> None:
    class Doubles(Fc):
        operators = ("TRANSPOSE",)

        def accepts(self, layer: Any) -> list[Limit]:
            raise ZeroDivisionError

        def layer(self, match: Match) -> Any:
            return match.op

    verdict = verify(Doubles(), examples=5)
    space: dict[str, Any] = {}
    exec(compile(verdict.test, "smallest", "exec"), space)
    assert "from covp.graph.attributes import Transpose\n" in verdict.test
    assert "from covp.testing import OperatorCase\n" in verdict.test
    assert space["Transpose"] and space["OperatorCase"] and space["check"]


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        (lambda self: {"X": 5}, r"fc: cases\(\) gave 5 for X"),
        (lambda self: 1 // 0, r"fc: cases\(\) raised ZeroDivisionError"),
    ],
)
def test_cases_that_are_none(cases: Any, said: str) -> None:
    with pytest.raises(AcceleratorError, match=said):
        verify(type("Wrong", (Fc,), {"cases": cases})())


@pytest.mark.parametrize("make", [lambda self: 1 // 0, lambda self: None])
def test_a_hardware_model_that_cannot_be_made(make: Any) -> None:
    wrong = type("Wrong", (Fc,), {"make_peripheral": make})()
    with pytest.raises(AcceleratorError, match=r"accelerator fc: make_peripheral\(\)"):
        verify(wrong)
    layer = ConvCase(kind="FULLY_CONNECTED").graph()
    with (
        covp.Session("riscv32") as session,
        pytest.raises(AcceleratorError, match=r"accelerator fc: make_peripheral\(\)"),
    ):
        session.load(covp.compile(layer, "riscv32", [wrong], allow_slower=True))


@pytest.mark.costly
def test_a_unit_for_another_core_is_rejected_at_once() -> None:
    with pytest.raises(UsageError, match="cfu is for riscv cores; cortex-m7 has a cortex-m7"):
        verify("cfu", "cortex-m7")


@pytest.mark.parametrize("spec", ["gemm", "qconv2d", "dma"])
def test_sleeping_needs_an_interrupt_line(spec: str) -> None:
    platform = covp.load_platform("riscv32")
    assert platform.accelerators is not None
    places = msgspec.structs.replace(platform.accelerators, irq=None)
    silent = msgspec.structs.replace(platform, accelerators=places)
    with pytest.raises(UsageError, match=f"accelerator {spec}: wait=sleep needs an interrupt line"):
        verify(f"{spec}:wait=sleep", silent)


@pytest.mark.slow
def test_a_core_with_little_memory() -> None:
    verdict = verify("gemm", "hifive1", examples=8)
    assert verdict.failure is None, verdict.test
    assert verdict.accepted["FULLY_CONNECTED"] > 5


def test_a_layer_that_is_too_large_to_be_tried_is_no_failure() -> None:
    class Hungry(Fc):
        """A table of 600 kB."""

        job = Job(
            *Fc.job.operands,
            *Fc.job.numbers,
            table("TABLE", "int8", lambda j: 600_000),
        )

        def registers(self, layer: Any) -> Mapping[str, Any]:
            """With the table."""
            return {**super().registers(layer), "TABLE": np.zeros(600_000, np.int8)}

    with pytest.raises(AcceleratorError, match="too large for the RAM"):
        verify(Hungry(), "hifive1", examples=20)


class Prepared(Fc):
    """Its driver wants to be called first, and takes floats."""

    def startup(self) -> list[CCall]:
        """A number that every layer needs."""
        return [CCall("fc_prepare", "fc_more.h", (3, 0.5))]

    def lower(self, match: Match) -> Any:
        """The job and a look at that number."""
        job = super().lower(match)
        numbers: Any = (3, np.float32(0.25), 4, 0.25)
        return [job, CCall("fc_prepared", "fc_more.h", numbers)]

    def driver(self, base: int) -> Mapping[str, str]:
        """Traps where an argument is wrong."""
        more = (
            "void fc_prepare(int n, float x);\nvoid fc_prepared(int n, float x, int m, float y);\n"
        )
        return {
            **super().driver(base),
            "fc_more.h": more,
            "fc_more.c": '#include "fc_more.h"\nstatic float seen;\n'
            "void fc_prepare(int n, float x) { seen = (float)n * x; }\n"
            "void fc_prepared(int n, float x, int m, float y)\n"
            "{ if (n != 3 || m != 4 || x + y + 1.0f != seen) __builtin_trap(); }\n",
        }


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["riscv32", "riscv32f", "cortex-m7", "cortex-m0plus"])
def test_start_up_calls_and_floats(platform: str) -> None:
    verdict = verify(Prepared(), platform, examples=5, seconds=0.5)
    assert verdict.failure is None, verdict.failure


def test_more_arguments_than_verify_can_pass() -> None:
    class Many(Prepared):
        def startup(self) -> list[CCall]:
            return [CCall("fc_prepare", "fc_more.h", tuple(range(13)))]

    assert "needs 13 argument words" in str(_failure(Many).failure)


OWN_CASES = """
from dataclasses import dataclass
import numpy as np
from hypothesis import strategies as st
from covp.accelerator.registry import find_backend
from covp.testing import ConvCase

@dataclass(frozen=True)
class Mine:
    n: int = 1
    gap: int = 0
    kind: str = "FULLY_CONNECTED"

    def graph(self):
        return ConvCase("FULLY_CONNECTED", channels=(self.n, 3)).graph()

    def inputs(self):
        return ConvCase("FULLY_CONNECTED", channels=(self.n, 3)).inputs()

class Own(type(find_backend("gemm"))):
    name = "own"

    def cases(self):
        return {"FULLY_CONNECTED": st.builds(Mine, st.integers(1, 50))}

    def compute(self, job):
        right = super().compute(job)
        return right ^ np.int8(1) if job.IN_CHANNELS > 9 else right
"""


def test_the_printed_test_of_a_user_s_own_case_imports_it_and_fails(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_CASES, encoding="utf-8")
    verdict = verify(f"{file}:Own")
    assert "Mine(n=10, " in verdict.test
    space: dict[str, Any] = {}
    exec(compile(verdict.test, "smallest", "exec"), space)
    with pytest.raises(CovpError, match="elements differ"):
        space["test_the_smallest_failing_layer"]()
