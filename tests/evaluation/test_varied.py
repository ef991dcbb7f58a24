"""Platforms and accelerators with other values by the names of sweeps."""

from __future__ import annotations

import pytest

from covp.errors import CovpError
from covp.evaluation.varied import vary_design


def test_platform_and_instances_get_their_values():
    platform, (small, big) = vary_design(
        "cortex-m4",
        ["small=gemm:size=4", "gemm"],
        {
            "small.bytes_per_cycle": 8,
            "gemm.size": 32,
            "platform.flash.wait_states.data": 3,
            "platform.ram.size": "64K",
            "platform.clock_hz": 80_000_000,
            "platform.core": "cortex-m33",
        },
    )
    assert (small.name, small.values["size"], small.values["bytes_per_cycle"]) == ("small", 4, 8)
    assert (big.name, big.values["size"], big.values["bytes_per_cycle"]) == ("gemm", 32, 4)
    flash, ram = platform.memory
    assert (flash.waits.fetch, flash.waits.data, ram.bytes) == (0, 3, 65536)
    assert (platform.clock_hz, platform.core.name) == (80_000_000, "cortex-m33")
    assert platform.energy == vary_design("cortex-m4", [], {})[0].energy


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("gem.size", 8, "gemm"),
        ("gemm", 8, "OWNER.NAME"),
        ("gemm.sise", 8, "size"),
        ("gemm.size", 0, "at least 1"),
        ("platform.clock", 8, "clock_hz"),
        ("platform.flash.waits", 8, "wait_states"),
        ("platform.flash.wait_states", 300, "255"),
        ("platform.flash.wait_states", "many", "wait_states"),
        ("platform.ram.size", "much", "size"),
        ("platform.core", "cortex-m5", "cortex-m"),
        ("platform.clock_hz", 0, "clock_hz"),
    ],
)
def test_what_is_wrong_is_one_line(name, value, says):
    with pytest.raises(CovpError) as caught:
        vary_design("cortex-m4", ["gemm"], {name: value})
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert name.split("=")[0] in str(caught.value) or name.split(".")[-1] in str(caught.value)
