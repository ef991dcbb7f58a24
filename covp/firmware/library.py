"""`Library`: a compiled model as a C library; each global symbol is prefixed with its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from covp.codegen.program import Program
from covp.compilers.toolchain import runtime_dir
from covp.firmware import interface
from covp.firmware.arithmetic import add_guard, probe

_SHARED = ("covp_job.h", "covp_interrupt.h", "covp_cache.h")
_MATH = ("math.c", "math_elementary.c")
_INCLUDE_MATH = "#include <math.h>"


@dataclass(frozen=True, eq=False)
class Library:
    """The files of a model, for any build system.

    All of ``src/*.c`` and ``src/*.S`` are compiled, with ``include`` and ``src`` as folders of
    headers. A C library with ``string.h`` is all they need. The functions of layers and the
    function that calls them are those that a simulation runs.

    Attributes:
        program: the model.
        files: path relative to the library's folder, to text.
    """

    program: Program
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """Prefix of every external name but those of accelerators' drivers."""
        return self.program.name

    @staticmethod
    def of(program: Program, static_arena: bool = False) -> Library:
        """Return the library of a program.

        Args:
            program: the model.
            static_arena: whether ``NAME_arena`` is part of it; else the caller brings the arena.
        """
        name = program.name
        texts = {
            file: text
            for file, text in program.sources.items()
            if static_arena or file != f"{name}_arena.c"
        }
        texts |= _headers_of_drivers(texts)
        if any(_INCLUDE_MATH in text for text in texts.values()):
            texts = {file: _with_own_math(text, name) for file, text in texts.items()}
            texts |= _math(name)
        texts[f"{name}.c"] = interface.source(program) + probe(name, texts)
        files = {f"src/{file}": add_guard(file, text) for file, text in texts.items()}
        return Library(program, {f"include/{name}.h": interface.header(program), **files})


def _headers_of_drivers(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that drivers share: the job protocol and how a core waits."""
    found: dict[str, str] = {}
    for name in _SHARED:
        if any(f"<{name}>" in text for text in (*texts.values(), *found.values())):
            found[name] = (runtime_dir() / "include" / name).read_text(encoding="utf-8")
    return found


def _with_own_math(text: str, name: str) -> str:
    return text.replace(_INCLUDE_MATH, f'#include "{name}_math.h"')


def _math(name: str) -> dict[str, str]:
    """Return the mathematical functions under names of the model: a C library's give other bits."""
    folder = runtime_dir()
    header = (folder / "include" / "math.h").read_text(encoding="utf-8")
    functions = re.findall(r"^(?:float|long) (\w+)\(", header, re.MULTILINE)
    macros = [*re.findall(r"^#define (\w+)", header, re.MULTILINE), *functions]
    renamed = "\n".join(
        [
            *(f"#undef {macro}" for macro in macros if not macro.startswith("COVP_")),
            *(f"#define {function} {name}_{function}" for function in functions),
        ]
    )
    guard = "#define COVP_MATH_H\n"
    start, end = header.split(guard)
    start = start.replace("COVP_MATH_H", f"{name.upper()}_MATH_H")
    text = f"{start}#define {name.upper()}_MATH_H\n\n{renamed}\n{end}"
    sources = {
        f"{name}_{file}": _with_own_math((folder / file).read_text(encoding="utf-8"), name)
        for file in _MATH
    }
    return {f"{name}_math.h": text, **sources}
