"""`simulated_cycles`: the cycles of a program's layers on the virtual device, cached by content."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

import covp.device
from covp.base.cache import content_key, load, store
from covp.building.platform_content import platform_content
from covp.codegen.program import Program
from covp.compilers.toolchain import Toolchain, get_toolchain
from covp.errors import CapacityError, DeviceFault, ToolchainError
from covp.graph.random_inputs import random_inputs
from covp.runtime.session import Session

FOLDER = "core-costs"
"""Of the cache."""
_SOURCES = frozenset({".py", ".c", ".h", ".yaml"})
_Cycles = tuple[int, ...] | None
_decoder: msgspec.json.Decoder[_Cycles] = msgspec.json.Decoder(_Cycles)


def simulated_cycles(program: Program, toolchain: str = "zig") -> _Cycles:
    """Return each layer's cycles in an inference on random inputs; instructions if unknown.

    Args:
        program: without accelerators.
        toolchain: "zig" or "gcc"; where that is not installed zig, which always is, stands in.

    Returns:
        None where the program does not compile, does not fit the platform, or faults.
    """
    try:
        tools = get_toolchain(toolchain, program.platform.core)
        key = _key(program, tools)
    except ToolchainError:
        toolchain, tools = "zig", get_toolchain("zig", program.platform.core)
        key = _key(program, tools)
    known = load(FOLDER, key)
    if known is not None:
        return _decoder.decode(known)
    cycles = _simulate(program, toolchain)
    store(FOLDER, key, msgspec.json.encode(cycles))
    return cycles


def _simulate(program: Program, toolchain: str) -> _Cycles:
    inputs = random_inputs(program.graph.inputs, 0, program.graph.ops)
    with Session(program.platform, toolchain=toolchain) as session:
        try:
            module = session.load(program)
            module.run(*inputs)
        except (CapacityError, DeviceFault, ToolchainError):
            return None
        layers = module.profile().layers
    spent = (layer.instructions if layer.cycles is None else layer.cycles for layer in layers)
    return tuple(cycles or 0 for cycles in spent)


def _key(program: Program, toolchain: Toolchain) -> str:
    """Return a hash of all that the cycles depend on."""
    folders = program.platform.core.folders
    models = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
    inputs = random_inputs(program.graph.inputs, 0, program.graph.ops)
    return content_key(
        simulator_content(),
        platform_content(program.platform),
        *(path.read_bytes() for path in models),
        toolchain.version,
        *(part for file in sorted(program.sources.items()) for part in file),
        *program.flags,
        *(array.tobytes() for array in inputs),
    )


@cache
def simulator_content() -> str:
    """Return a hash of the virtual device's sources."""
    root = Path(covp.device.__file__).parent
    files = [path for path in sorted(root.rglob("*")) if path.suffix in _SOURCES]
    return content_key(*(path.read_bytes() for path in files))
