"""Instruction counts of whole inferences against QEMU's, by benchmarks/qemu_counts.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform

from .test_gdb_remote import need

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "qemu_counts.py"


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["mps2-an386", "mps2-an500", "mps3-an547", "qemu-riscv32"])
@pytest.mark.parametrize("model", ["toycar", "kws"])
def test_an_inference_takes_as_many_instructions(platform: str, model: str) -> None:
    if not SCRIPT.is_file():
        pytest.skip("not in a checkout: there is no benchmarks/qemu_counts.py")
    specification = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    assert specification is not None and specification.loader is not None
    counts = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(counts)
    chosen = load_platform(need(platform))
    assert counts.qemu_instructions(model, chosen) == counts.virtual_instructions(model, chosen)
