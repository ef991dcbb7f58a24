"""Some cases of tests that have many run by default, all of them with ``-m slow`` or ``-m ""``."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from pathlib import Path

import pytest

# folder of tests -> of the cases of each of its tests, one in so many runs by default: the cases
# are cores, compilers, types and operators, and every core meets some of a file's tests
ONE_IN = {
    "accelerator": 6,
    "attack": 6,
    "bisect": 3,
    "cli": 5,
    "codegen": 12,
    "cores": 2,
    "coverage": 2,
    "data": 2,
    "debug": 8,
    "device": 8,
    "docs": 2,
    "evaluation": 3,
    "export": 6,
    "frontend": 3,
    "fuzz": 5,
    "graph": 4,
    "hardware": 3,
    "laboratory": 4,
    "machine": 2,
    "mlperf": 5,
    "models": 2,
    "multicore": 2,
    "onnx": 6,
    "overlap": 3,
    "packaging": 3,
    "peripherals": 4,
    "planted": 3,
    "retiming": 2,
    "rtl": 2,
    "runtime": 6,
    "sweep": 2,
    "testing": 2,
    "timeline": 2,
    "timing": 3,
    "toolchain": 4,
    "tune": 3,
    "verify": 6,
}
FEWEST = 3
"""Tests of fewer cases run them all."""


@pytest.hookimpl(tryfirst=True)  # before cases are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for name, group in cases.items():
        kept = math.ceil(len(group) / ONE_IN.get(Path(name.partition("::")[0]).parent.name, 1))
        if len(group) < FEWEST:
            continue
        # an order that is the same everywhere, and has nothing to do with that of the parameters
        group.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in group[kept:]:
            item.add_marker(pytest.mark.slow)
