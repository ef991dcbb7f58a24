"""A driver that does not leave the core as it found it is found, by the name of what it changed."""

from __future__ import annotations

from functools import partial

import pytest

from covp.testing.verify import ConvCase
from covp.testing.verify import verify as verify_in_full
from covp.testing.verify.bench import Conditions
from covp.testing.verify.driver_bench import DriverBench
from tests.testing.verify.units import Dense, assembly, untidy

pytestmark = pytest.mark.usefixtures("counted_time")

verify = partial(verify_in_full, models=(), examples=20, seconds=2)

RISCV = {
    "csrci mstatus, 8": "mstatus.MIE",
    "csrsi mstatus, 8": "mstatus.MIE",
    "csrw mie, zero": "mie",
    "li s1, 0": "s1",
    "li s11, 7": "s11",
    "mv tp, sp": "tp",
}
RISCV_FLOATS = {
    "csrw frm, 1": "frm",
    "fmv.w.x fs2, zero": "fs2",
    "li t0, 0x6000; csrc mstatus, t0": "mstatus.FS",
}
ARMV6M = {"cpsid i": "PRIMASK", "cpsie i": "PRIMASK", "movs r3, #0; mov r8, r3": "r8"}
ARMV7M = {
    "cpsid i": "PRIMASK",
    "cpsid f": "FAULTMASK",
    "mov r3, #64; msr basepri, r3": "BASEPRI",
    "mov r6, #0": "r6",
    "vmrs r3, fpscr; orr r3, r3, #0x400000; vmsr fpscr, r3": "fpscr",
    "vmrs r3, fpscr; orr r3, r3, #0x1000000; vmsr fpscr, r3": "fpscr",
    "vmov.f32 s20, #1.0": "s20",
}
UNTIDY = [
    *(("riscv32", *item) for item in RISCV.items()),
    *(("riscv32f", *item) for item in RISCV_FLOATS.items()),
    *(("cortex-m0plus", *item) for item in ARMV6M.items()),
    *(("cortex-m4", *item) for item in ARMV7M.items()),
]
FLOAT_MODES = [
    ("cortex-m4", "*(volatile uint32_t *)0xe000ef34u &= 0x3fffffffu;", "FPCCR"),
    ("cortex-m7", "*(volatile uint32_t *)0xe000ed88u = 0;", "CPACR"),
]


@pytest.mark.parametrize(
    ("platform", "statement", "name"),
    [(p, assembly(text), name) for p, text, name in UNTIDY] + FLOAT_MODES,
)
def test_what_a_driver_leaves_changed_is_named(platform: str, statement: str, name: str) -> None:
    verdict = verify(untidy(statement), platform)
    assert verdict.failure is not None
    assert "dense: dense_run returned with 0x" in verdict.failure
    assert f" in {name}, which was 0x" in verdict.failure
    # a small layer is enough: none is too small for it
    assert "channels=(1, 1)" in verdict.test and "batch=1" in verdict.test


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("platform", "text"), [("riscv32", "csrci mstatus, 8"), ("cortex-m4", "cpsid i")]
)
def test_masked_interrupts_are_found_with_every_seed(platform: str, text: str, seed: int) -> None:
    assert verify(untidy(assembly(text)), platform, seed=seed).failure is not None


class Drifting(Dense):
    """Its driver returns with another stack pointer."""

    def driver(self, base: int) -> dict[str, str]:
        """With a function around the generated one."""
        files = dict(super().driver(base))
        files["dense.c"] = files["dense.c"].replace("void dense_run(", "void dense_inner(")
        return files | {
            "dense_outer.c": '__asm__(".text\\n.globl dense_run\\n.type dense_run, %function\\n"\n'
            '"dense_run:\\n addi sp, sp, -16\\n sw ra, 12(sp)\\n call dense_inner\\n"\n'
            '"lw ra, 12(sp)\\n addi sp, sp, 32\\n ret\\n.size dense_run, . - dense_run\\n");\n'
        }


def test_a_stack_pointer_that_drifts_is_named() -> None:
    failure = verify(Drifting()).failure
    assert failure is not None and " in sp, which was 0x" in failure


@pytest.mark.parametrize("platform", ["riscv32", "riscv32f", "cortex-m4", "cortex-m0plus"])
def test_a_tidy_driver_passes_with_interrupts_enabled_and_masked(platform: str) -> None:
    case = ConvCase("FULLY_CONNECTED", channels=(5, 3))
    for spec in (Dense(), Dense({"wait": "sleep"})):
        with DriverBench(spec, platform) as bench:
            for number in range(8):
                conditions = Conditions(
                    masked=bool(number & 1), halves=bool(number & 2), wakes=bool(number & 4)
                )
                outcome = bench.run(case.graph(), case.inputs(), conditions)
                assert outcome.outputs is not None and not outcome.wrong
