"""Lines and functions: the counts of GCC's own coverage on this machine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp
from covp.laboratory.coverage import Coverage
from tests.laboratory.coverage.gcov import gcov
from tests.laboratory.coverage.programs import functions

PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]
PREFIX = {"cortex-m4": "arm-none-eabi-", "cortex-m0plus": "arm-none-eabi-"}
needs_gcov = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("gcov")), reason="gcc and gcov are not installed"
)


def toolchains(platform: str) -> list[str]:
    prefix = PREFIX.get(platform, "riscv64-unknown-elf-")
    return ["zig", "gcc"] if shutil.which(f"{prefix}gcc") else ["zig"]


@needs_gcov
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=functions(),
    calls=st.lists(st.tuples(*[st.integers(-3, 4)] * 3), min_size=1, max_size=4),
    platform=st.sampled_from(PLATFORMS),
    data=st.data(),
)
def test_random_functions(
    text: str, calls: list[tuple[int, ...]], platform: str, data: st.DataObject
) -> None:
    toolchain = data.draw(st.sampled_from(toolchains(platform)))
    with tempfile.TemporaryDirectory() as name, covp.Session(platform, toolchain=toolchain) as s:
        source = Path(name).resolve() / "unit.c"
        source.write_text(text)
        lines, entered = gcov(Path(name), source, calls)
        f = s.load_c(source, flags=("-O0", "-w"))["f"]
        with Coverage(s) as c:
            for call in calls:
                f(*call)
        found = c.lines(source)
        shared = lines.keys() & found.keys()
        assert len(shared) >= len(lines) // 2
        assert {n: found[n] for n in shared} == {n: lines[n] for n in shared}
        assert c.functions(source) == entered
