"""`unit_gates`: the size of a unit's Verilog after generic synthesis."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.rtl.choice import RTL, chosen_rtl, with_rtl
from covp.accelerator.rtl.library import Parameters, verilog_value
from covp.accelerator.rtl.sources import UnitRtl, top_of
from covp.base import cache
from covp.base.cache import content_key
from covp.base.temporary import temporary_folder
from covp.compilers.rtl_sources import RtlSources
from covp.compilers.yosys import Gates, synthesize, yosys_version
from covp.errors import UsageError


def unit_gates(accelerator: AcceleratorBackend) -> Gates:
    """Return the gates of a unit's Verilog, from the cache if it was synthesized before.

    Args:
        accelerator: with Verilog of its class, or of its parameter ``rtl``.

    Raises:
        UsageError: it has no Verilog.
        ToolchainError: Yosys is missing or rejects the sources.
    """
    declared: UnitRtl | None = getattr(accelerator, "rtl", None)
    chosen = chosen_rtl(with_rtl(accelerator), declared)
    if chosen is None or RTL not in accelerator.parameters:
        raise UsageError(f"accelerator {accelerator.name} has no RTL: rtl=FILE.v")
    rtl, folder, parameters = chosen
    sources = rtl.files(folder)
    key = content_key(*sources.contents(), repr(sorted(parameters.items())), yosys_version())
    file = f"{top_of(rtl, sources)}-{key}.json"
    known = cache.load("area", file)
    if known is not None:
        return Gates(**json.loads(known))
    with temporary_folder("area") as temporary:
        gates = _synthesize(accelerator.name, rtl, sources, parameters, Path(temporary))
    cache.store("area", file, json.dumps(dataclasses.asdict(gates)).encode())
    return gates


def _synthesize(
    name: str, rtl: UnitRtl, sources: RtlSources, parameters: Parameters, folder: Path
) -> Gates:
    sources = sources.patched(folder)
    top = top_of(rtl, sources)
    here = folder / "unit"
    here.mkdir()
    included = {path: f"include{place}" for place, path in enumerate(sources.include)}
    for path, copy in included.items():
        (here / copy).mkdir()
        for header in path.iterdir():
            if header.is_file() and header.suffix in (".v", ".sv", ".vh", ".svh", ".inc"):
                shutil.copy(header, here / copy)
    files = [f"{place}-{path.name}" for place, path in enumerate(sources.files)]
    for path, copy in zip(sources.files, files, strict=True):
        shutil.copy(path, here / copy)
    options = [
        *("-j 1", "-D SYNTHESIS", "-D YOSYS", "--ignore-assertions", "--ignore-initial"),
        *("--allow-use-before-declare", "-Wno-everything"),
        *(f"-D {define}" for define in sources.defines),
        *(f"-I {copy}" for copy in included.values()),
        *(f"-G {key}={verilog_value(value)}" for key, value in parameters.items()),
    ]
    read = f"read_slang {' '.join(options)} --top {top} {' '.join(files)}\nhierarchy -top {top}"
    return synthesize(f"the RTL of {name}", here, read, top)
