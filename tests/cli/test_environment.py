"""Defaults of options from the environment, and the groups of a command's help."""

import re
from pathlib import Path

import pytest

from covp.cli.groups import HEADINGS

from .conftest import Call


@pytest.mark.costly
def test_a_variable_is_an_option_s_default(
    call: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVP_RUN_PLATFORM", "riscv32")
    monkeypatch.setenv("COVP_RUN_ACCEL", "qconv2d cfu")
    monkeypatch.setenv("COVP_RUN_JSON", "1")
    found = call("run", small).document
    assert (found["platform"], found["accelerators"]) == ("riscv32", ["qconv2d", "cfu"])
    other = call("run", small, "-p", "stm32f746", "-a", "gemm").document
    assert (other["platform"], other["accelerators"]) == ("stm32f746", ["gemm"])


def test_a_wrong_variable_is_a_wrong_option(
    call: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVP_EXPORT_MAX_SCRATCH", "much")
    refusal = call("export", small, "-p", "riscv32", "-o", "none").refusal
    assert "--max-scratch" in refusal and "much" in refusal


def test_every_option_of_run_has_a_heading(call: Call) -> None:
    text = call("run", "--help").out
    headings = re.findall(r"^(\w[\w ]*):$", text, re.M)
    assert headings == [*HEADINGS]
    assert text.split("\nOptions:\n")[1].split() == [
        "-h,",
        "--help",
        "Show",
        "this",
        "message",
        "and",
        "exit.",
    ]
