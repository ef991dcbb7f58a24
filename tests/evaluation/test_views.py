"""Evaluations and comparisons in a notebook show the figures that they hold."""

from __future__ import annotations

import re

import pytest

from covp.evaluation import compare


def cells(html: str) -> list[str]:
    return re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", html)


@pytest.mark.costly
@pytest.mark.process
def test_figures_are_in_the_tables() -> None:
    found = compare("toycar", "riscv32", ["gemm"])
    row = cells(found._repr_html_())[8:]
    alone, accelerated = found.alone, found.accelerated
    counts = [f"{run.profile.instructions:,}" for run in (alone, accelerated)]
    assert row[:5] == ["toycar", "riscv32", "gemm", *counts]
    assert row[5:] == [f"{found.speedup:.1f}x", "100%", "yes"]
    shown = cells(accelerated._repr_html_())
    facts = dict(zip(shown[:18:2], shown[1:18:2], strict=True))
    assert facts["accelerators"] == "gemm" and facts["device"] == "virtual"
    assert facts["matches the reference"] == "bit-exact: 10 layers x 4 inputs"
    assert facts["flash, bytes"] == f"{accelerated.memory.flash_bytes:,}"
    layers = accelerated.program.layers
    assert [shown[i] for i, text in enumerate(shown) if text.endswith(layers[0].name)]
    assert "cycles (estimated)" in shown
