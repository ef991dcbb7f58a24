"""Misaligned accesses on the RTL of cores that trap: what the virtual device says of them."""

from __future__ import annotations

import pytest

from covp.chip.platform_file import load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from tests.conftest import load
from tests.device.misaligned import FORMS, text_of, write_pointers
from tests.device.rtl.conftest import need_rtl


@pytest.mark.costly
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "core",
    [
        "picorv32",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("vexriscv-lite", "vexriscv-full", "vexriscv-imac", "vexriscv-cfu")
        ),
    ],
)
def test_the_same_fault(core, form):
    need_rtl(core)
    platform = load_platform(core)
    text = text_of(FORMS[form], 9, platform.ram.start, is_arm=False)
    seen = []
    for make in (VirtualDevice, RtlDevice):
        loaded = load(core, text, device=make(platform))  # type: ignore[arg-type]
        with loaded.device as device:
            write_pointers(device, platform.ram.start)
            with pytest.raises(DeviceFault) as caught:
                loaded.run()
            seen.append((caught.value.kind, caught.value.pc))
    assert seen[0] == seen[1]
    assert seen[0][0] == "misaligned access"
