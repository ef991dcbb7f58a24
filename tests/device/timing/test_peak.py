"""Roofs of cores: the cycles of the instructions in the manuals."""

import pytest

from covp.chip.cores import find_core
from covp.device.timing.peak import CorePeak, core_peak


@pytest.mark.parametrize(
    ("core", "peak"),
    [
        # TRM table 3-1: SMLAD 1 cycle, loads pipelined
        ("cortex-m4f", CorePeak(2, 4, "SMLAD")),
        # TRM table 3-1: MLA 2 cycles
        ("cortex-m3", CorePeak(1, 4, "MLA of two products")),
        # TRM table 3-1: MULS and ADDS 1 cycle each, LDM of four registers 1 + 4
        ("cortex-m0plus", CorePeak(1, 16 / 5, "MULS of two products + ADDS")),
        # user manual, pipeline details: mul, add and lw 1 cycle each
        ("cv32e40p", CorePeak(1, 4, "MUL of two products + ADD")),
        # two pipelines, one multiplier; two loads a cycle (TCM)
        ("cortex-m7f", CorePeak(2, 8, "SMLAD")),
    ],
)
def test_peaks_are_those_of_the_manuals(core: str, peak: CorePeak) -> None:
    assert core_peak(find_core(core)) == peak


def test_a_core_without_multiplier_or_model_has_no_roof() -> None:
    assert core_peak(find_core("serv")).macs_per_cycle is None
    assert core_peak(find_core("x86-64")) == CorePeak(None, None, "")
