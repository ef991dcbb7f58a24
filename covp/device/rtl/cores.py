"""The cores whose RTL can be simulated: one YAML file in ``cores`` for each, named as the core."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from covp.errors import PlatformError, near_misses

FOLDER = Path(__file__).parent / "cores"


class RtlCore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a core's RTL is and how it is started.

    Attributes:
        package: name of the Python package that brings the sources.
        licence: of the sources.
        bus: of its ports: the header ``harness/BUS.h`` answers them.
        wrapper: Verilog file in ``cores`` with the module ``covp_core``, which has the ports that
            the harness expects.
        sources: files of the package, in the order that Verilator needs.
        include: folders of the package for `include`.
        defines: Verilog macros, "NAME" or "NAME=VALUE".
        parameters: of the wrapper.
        boot: bytes from the boot address to the first instruction.
        compressed: whether the core has compressed instructions (RISC-V's C).
        interrupts: whether it has the machine external interrupt.
        custom_instructions: whether it has a port for them, of opcode custom-0 alone.
        csrs: number to value of CSRs that the boot code sets.
    """

    package: str
    licence: str
    bus: Literal["obi", "handshake"]
    wrapper: str
    sources: tuple[str, ...]
    include: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    parameters: dict[str, int] = {}
    boot: int = 0
    compressed: bool = True
    interrupts: bool = True
    custom_instructions: bool = False
    csrs: dict[int, int] = {}


def rtl_names() -> list[str]:
    """Names of the cores that there is RTL of."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def rtl_packages() -> dict[str, list[str]]:
    """The package with the sources of each core to the cores that it has."""
    packages: dict[str, list[str]] = {}
    for name in rtl_names():
        packages.setdefault(rtl_of(name).package, []).append(name)
    return packages


def rtl_of(core: str) -> RtlCore:
    """The RTL of a core.

    Raises:
        PlatformError: there is none of that core.
    """
    if core not in rtl_names():
        known = near_misses(core, rtl_names())
        raise PlatformError(f"device rtl: there is no RTL of core {core}: {known}")
    content = yaml.safe_load((FOLDER / f"{core}.yaml").read_text(encoding="utf-8"))
    return msgspec.convert(content, RtlCore)
