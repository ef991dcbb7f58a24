"""The files of one layer: its C, and what it cannot be linked without."""

from __future__ import annotations

import re

from covp.codegen.program import AcceleratorInstance, Program


def layer_files(program: Program, position: int) -> dict[str, str]:
    """Name to text: all of the program's files but those of other layers and of the inference.

    Args:
        program: its sources.
        position: of the layer.
    """
    wanted = program.layers[position].function
    others = {layer.function for layer in program.layers} | {program.run_function}
    others |= {layer.wrapper for n, layer in enumerate(program.layers) if n != position} - {""}
    accelerators = needed_accelerators(program, position)
    drivers = {file for a in program.accelerators if a not in accelerators for file in a.files}
    files = {
        name: text
        for name, text in program.sources.items()
        if name not in drivers
        and (not name.endswith(".c") or _defines(text, wanted) or not _any_of(text, others))
        and (not name.endswith(".h") or any(_includes(t, name) for t in program.sources.values()))
    }
    if program.startup_function:
        files |= _startup(program)
    return files


def needed_accelerators(program: Program, position: int) -> tuple[AcceleratorInstance, ...]:
    """Return the accelerators that a layer runs on: one or none."""
    target = program.layers[position].target
    return tuple(a for a in program.accelerators if a.name == target)


def _startup(program: Program) -> dict[str, str]:
    """Return the file of the inference up to the function that calls the layers."""
    for name, text in program.sources.items():
        found = _body_of(program.run_function, text)
        if found is not None and name.endswith(".c"):
            return {name: text[: found.start()]}
    return {}


def _any_of(text: str, functions: set[str]) -> bool:
    return any(_defines(text, function) for function in functions)


def _defines(text: str, function: str) -> bool:
    return _body_of(function, text) is not None


def _body_of(function: str, text: str) -> re.Match[str] | None:
    """Return the head of a function with a body, which begins in the first column."""
    head = rf"^\w[^;={{}}]*\b{re.escape(function)}\([^;{{}}]*\)\s*\{{"
    return re.search(head, text, re.M)


def _includes(text: str, header: str) -> bool:
    return f'"{header}"' in text
