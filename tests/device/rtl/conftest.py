"""Devices with RTL; tests are skipped by name where a core's sources or Verilator are missing."""

from __future__ import annotations

import pytest

from covp.chip.cores import find_core
from covp.compilers.verilator import find_verilator
from covp.device.rtl.cores import find_package, rtl_of
from covp.errors import ToolchainError


def need_rtl(core: str) -> None:
    """Skip the test that calls it where the core cannot be simulated."""
    try:
        find_verilator()
        find_package(rtl_of(find_core(core)).package)
    except ToolchainError as error:
        pytest.skip(f"RTL of {core}: {error}")


@pytest.fixture
def cv32e40p() -> str:
    need_rtl("cv32e40p")
    return "cv32e40p"
