"""`UnitRtl`: the Verilog of a unit, as an accelerator's class declares it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from covp.compilers.rtl_sources import RtlFiles, RtlSources
from covp.errors import UsageError

_MODULE = re.compile(r"^\s*module\s+(\w+)", re.MULTILINE)
_LARGEST_LATENCY = 1000
INITIAL = {"random": 2, "zeros": 0}
"""Values of `UnitRtl.initial`, and Verilator's numbers for them (`randReset`)."""


@dataclass(frozen=True)
class UnitRtl:
    """The Verilog of a unit: the registers of its declared job on one bus, memory on another.

    Which ports are the buses is found by the signals' names, as their standards have them
    (`covp.accelerator.rtl.ports`): registers on AXI4-Lite, APB, Wishbone, OBI or HWPE's port,
    memory on AXI4, AHB-Lite, TileLink-UL, OBI or TCDM, through one port or several. ``irq`` is up
    from the end of a job until INTERRUPT.PENDING is cleared, if INTERRUPT.ENABLE is set.

    Attributes:
        sources: Verilog files, by their paths from ``root``, in the order that they need.
        top: the module; "": the one that is named like the last of the sources, or its only one.
        root: folder of the files, from that of the class's file; "": that one.
        filelist: file that names sources, as simulators read it; they come before ``sources``.
        variables: of that file, to folders.
        include: folders for `include`.
        defines: Verilog macros, "NAME" or "NAME=VALUE".
        patches: unified diffs of what is under ``root``, applied in a copy.
        parameters: of the module, to numbers, or to the names of parameters of the accelerator.
        registers, memory: BUS, BUS:PREFIX or :PREFIX, where the names of ports do not decide; of
            memory ports one for each, else all that are found are taken.
        interrupt: the output that is the interrupt; "": irq.
        busy: an output that is up while the unit works, or "". While it is down, and 64 cycles
            after an access to a register, the clock of an `RtlPeripheral` is halted.
        ties: inputs that nothing else drives, to their values.
        latency: cycles from a request of the memory port to the first data, at least 1.
        initial: "random": what a reset does not set begins with any values, as in silicon, always
            the same; "zeros": for Verilog that is only right with them.
    """

    sources: tuple[str, ...] = ()
    top: str = ""
    root: str = ""
    filelist: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    registers: str = ""
    memory: str | tuple[str, ...] = ""
    interrupt: str = ""
    busy: str = ""
    ties: Mapping[str, int] = field(default_factory=dict)
    latency: int = 1
    initial: str = "random"

    def files(self, folder: Path) -> RtlSources:
        """Return its files.

        Args:
            folder: that ``root`` is relative to.

        Raises:
            UsageError: there is no such file, or a value is wrong.
            PlatformError: the list of files cannot be read.
        """
        if not 1 <= self.latency <= _LARGEST_LATENCY:
            raise UsageError(f"rtl: latency={self.latency}: 1 to {_LARGEST_LATENCY} cycles")
        if self.initial not in INITIAL:
            raise UsageError(f"rtl: initial={self.initial!r}: {' or '.join(INITIAL)}")
        root = folder / self.root
        listed = RtlFiles()
        if self.filelist:
            variables = {name: str(root / path) for name, path in self.variables.items()}
            listed.read(root / self.filelist, root, variables)
        files = (*listed.files, *(root / source for source in self.sources))
        found = RtlSources(
            root,
            files,
            # modules that no list names are found beside those that one does
            (
                *(*listed.include, *(root / name for name in self.include)),
                *dict.fromkeys(path.parent for path in files),
            ),
            (*listed.defines, *self.defines),
            tuple(root / name for name in self.patches),
        )
        for path in (*found.files, *found.patches):
            if not path.is_file():
                raise UsageError("no such file; rtl names the unit's Verilog", where=path)
        if not found.files:
            raise UsageError("rtl: no sources; name them, or a filelist")
        return found


def top_of(rtl: UnitRtl, sources: RtlSources) -> str:
    """Return the name of the module that is the unit.

    Args:
        rtl: its declaration.
        sources: its files.

    Raises:
        UsageError: nothing says which one it is.
    """
    if rtl.top:
        return rtl.top
    last = sources.files[-1]
    modules = _MODULE.findall(last.read_text("utf-8", errors="replace"))
    if last.stem in modules:
        return last.stem
    if len(modules) != 1:
        known = f"its modules are {', '.join(modules)}, none named {last.stem}"
        what = (
            f"{known}: say which one is the unit, top=..." if modules else "has no Verilog module"
        )
        raise UsageError(what, where=last)
    return str(modules[0])
