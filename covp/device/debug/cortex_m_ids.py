"""Identification registers of Cortex-M cores and chips, as debuggers read them. Data only.

Sources: the technical reference manuals of the cores (Arm DDI0484C Cortex-M0+, DDI0337I Cortex-M3,
DDI0439D Cortex-M4, DDI0489F Cortex-M7, 100230 Cortex-M33), their tables of the system control,
debug and ROM table registers; Arm DDI0403E C1.4 (the ROM table) and ADIv5.2 (IHI0031E) for the
identification registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from covp.chip.platform_file import Platform
from covp.errors import DeviceError

_ROM_CLASS, _CORESIGHT_CLASS, _GENERIC_CLASS = 0x1, 0x9, 0xE


@dataclass(frozen=True)
class Component:
    """A debug component by its identification registers; the designer is Arm.

    Attributes:
        part: the part number, 12 bits.
        kind: the component class in CIDR1.
        architecture: DEVARCH; 0 where the component has none.
    """

    part: int
    kind: int = _GENERIC_CLASS
    architecture: int = 0

    def register(self, offset: int) -> int | None:
        """Return DEVARCH, PIDR0..7 or CIDR0..3 by offset in the component's 4 KB, or None."""
        if offset == 0xFBC and self.architecture:
            return self.architecture
        if not 0xFD0 <= offset < 0x1000:
            return None
        # JEP106: Arm is number 0x3B of the continuation 4.
        peripheral = (0x04, 0, 0, 0, self.part & 0xFF, 0xB0 | self.part >> 8, 0x0B, 0)
        identity = (0x0D, self.kind << 4, 0x05, 0xB1)
        return (*peripheral, *identity)[(offset - 0xFD0) // 4]


@dataclass(frozen=True)
class CoreIds:
    """The identification registers of a core and its debug components.

    Attributes:
        cpuid: CPUID.
        mvfr: MVFR0, MVFR1 and MVFR2; zeros without floating point.
        fp_ctrl: FP_CTRL (BP_CTRL on ARMv6-M) at reset: how many breakpoints, which revision.
        watchpoints: comparators of the DWT.
        swd_id, jtag_id: of the debug port.
        ap_id: IDR of the access port that leads to the core's bus.
        scs, dwt, fpb, rom: the components.
        increment_bits: of the access port's address, those that are incremented after an access.
    """

    cpuid: int
    mvfr: tuple[int, int, int]
    fp_ctrl: int
    watchpoints: int
    swd_id: int
    jtag_id: int
    ap_id: int
    scs: Component
    dwt: Component
    fpb: Component
    rom: Component
    increment_bits: int = 10


_NO_FLOATS = (0, 0, 0)
_SINGLE = (0x10110021, 0x11000011, 0)
_SINGLE_V5 = (0x10110021, 0x11000011, 0x40)
_REVISION_1_6_CODE_2_LITERAL = 0x260
_REVISION_2_8_CODE = 0x10000080

_M0PLUS = CoreIds(
    0x410CC601, _NO_FLOATS, 0x40, 2, 0x0BC11477, 0x0BA00477, 0x04770031,
    Component(0x008), Component(0x00A), Component(0x00B), Component(0x4C0, _ROM_CLASS),
)  # fmt: skip
_M3 = CoreIds(
    0x412FC231, _NO_FLOATS, _REVISION_1_6_CODE_2_LITERAL, 4, 0x2BA01477, 0x4BA00477, 0x24770011,
    Component(0x000), Component(0x002), Component(0x003), Component(0x4C3, _ROM_CLASS), 12,
)  # fmt: skip
_M4 = CoreIds(
    0x410FC241, _SINGLE, _REVISION_1_6_CODE_2_LITERAL, 4, 0x2BA01477, 0x4BA00477, 0x24770011,
    Component(0x00C), Component(0x002), Component(0x003), Component(0x4C4, _ROM_CLASS), 12,
)  # fmt: skip
_M7 = CoreIds(
    0x410FC271, _SINGLE_V5, _REVISION_2_8_CODE, 4, 0x5BA02477, 0x5BA00477, 0x74770001,
    Component(0x00C), Component(0x002), Component(0x00E), Component(0x4C7, _ROM_CLASS),
)  # fmt: skip
_M33 = CoreIds(
    0x410FD214, _SINGLE_V5, _REVISION_2_8_CODE, 4, 0x0BE12477, 0x0BA04477, 0x14770015,
    Component(0xD21, _CORESIGHT_CLASS, 0x47702A04),
    Component(0xD21, _CORESIGHT_CLASS, 0x47701A02),
    Component(0xD21, _CORESIGHT_CLASS, 0x47701A03),
    Component(0x4C9, _ROM_CLASS),
)  # fmt: skip
_BY_CPU = {
    "CORTEX_M0": _M0PLUS,
    "CORTEX_M3": _M3,
    "CORTEX_M4": _M4,
    "CORTEX_M7": _M7,
    "CORTEX_M33": _M33,
}


_SERIAL_WIRE = {"stm32h7": 0x6BA02477}
"""Debug ports that are not the core's usual one, by board support (RM0433, "DP registers")."""


def core_ids(platform: Platform) -> CoreIds:
    """Return the identification of the platform's core.

    Raises:
        DeviceError: the core has no debug registers of Arm's."""
    core = platform.core
    if core.architecture != "arm" or core.unicorn_cpu not in _BY_CPU:
        raise DeviceError(f"core {core.name} has no Cortex-M debug registers; use a Cortex-M core")
    ids = _BY_CPU[core.unicorn_cpu]
    return replace(ids, swd_id=_SERIAL_WIRE.get(platform.board, ids.swd_id))
