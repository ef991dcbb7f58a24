"""docs/rtl-units.md names the very signals that ports are found by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.accelerator.rtl.buses import MEMORY_BUSES, REGISTER_BUSES, Bus

PAGE = (Path(__file__).parents[3] / "docs" / "rtl-units.md").read_text("utf-8")


def row(bus: Bus, role: str) -> str:
    """Return the signals of a bus in the page's table."""
    start = PAGE.index(f"| {role} | ")
    found = re.search(
        rf"^\| (?:{role})? ?\| {re.escape(bus.title)} \| (.*) \|$", PAGE[start:], re.M
    )
    assert found is not None, bus.title
    return found[1]


@pytest.mark.parametrize("bus", REGISTER_BUSES, ids=lambda bus: bus.name)
def test_registers(bus: Bus) -> None:
    signals = {"wdat": "dat_i", "rdat": "dat_o"}
    named = set(re.findall(r"\w+", row(bus, "registers")))
    assert {signals.get(name, name) for name in bus.signals} <= named
    assert named <= {
        *(signals.get(n, n) for n in bus.signals), *bus.others, *bus.defaults
    }  # fmt: skip


@pytest.mark.parametrize("bus", MEMORY_BUSES, ids=lambda bus: bus.name)
def test_memory(bus: Bus) -> None:
    text = row(bus, "memory")
    named = {name for part in re.findall(r"`([^`]*)`", text) for name in part.split()}
    if bus.name == "axi4":  # "as above, and ..."
        assert {"arlen", "awburst", "wlast"} <= named
    else:
        assert set(bus.signals) <= named
    assert named <= {*bus.signals, *bus.others, *bus.defaults}
