"""`Library`: a compiled model as a C library; each global symbol is prefixed with its name.

Sums and products are rounded one by one, as the model was checked. A compiler may be allowed to
fuse them (C17 6.5, paragraph 8; GCC does by default), to reorder them, to leave out infinities or
signs of zeros, and a core may flush subnormal numbers to zero. Sources forbid what a source can; a
probe finds the rest when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from covp.codegen.program import Program
from covp.compilers.toolchain import runtime_dir
from covp.firmware import interface

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


_FLOAT = re.compile(r"\bfloat\b")

_GUARD = """\
/* Sums and products are rounded one by one. No version of GCC knows the standard's pragma. */
#ifdef __FAST_MATH__
#error "the results of this model need IEEE 754 arithmetic: compile without -ffast-math"
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

"""

_PROBE = Template("""\

/* Volatile, so that the core computes and not the compiler. */
static const volatile uint32_t numbers[] = {
    0x3f800800u, /* 1 + 2**-12 */
    0xbf801000u, /* minus its square, rounded */
    0x4b800000u, /* 2**24 */
    0x3f800000u, /* 1 */
    0x33800000u, /* 2**-24 */
    0x00800000u, /* the smallest normal number */
    0x3f000000u, /* 0.5 */
    0x7f800000u, /* infinity */
    0x00000000u, /* 0 */
};

static float number(unsigned index)
{
    const uint32_t value = numbers[index];
    float found;
    memcpy(&found, &value, sizeof found);
    return found;
}

static uint32_t bits(float value)
{
    uint32_t found;
    memcpy(&found, &value, sizeof found);
    return found;
}

const char *${name}_arithmetic(void)
{
    const float a = number(0), square = number(1), large = number(2), one = number(3);
    const float step = number(4), infinity = number(7), nothing = number(8);
    if (bits(one + step) != bits(one) || bits(-one - step) != bits(-one))
        return "results are not rounded to the nearest: set the core's mode to IEEE 754";
    if (bits(a * a + square) != 0u)
        return "products and sums are fused: compile with -ffp-contract=off";
    if (bits((large + one) - large) != 0u)
        return "sums are reordered: compile without -ffast-math";
    if (bits(infinity - infinity) == 0u || bits(0.0f - nothing) != 0u)
        return "infinities or signs of zeros are left out: compile without -ffast-math";
    if (bits(number(5) * number(6)) == 0u)
        return "subnormal numbers are flushed to zero: set the core's mode to IEEE 754";
    return NULL;
}
""")

_NO_FLOATS = Template("""\

const char *${name}_arithmetic(void)
{
    return NULL; /* there are integers only */
}
""")


def probe(name: str, sources: Mapping[str, str]) -> str:
    """Return the definition of ``NAME_arithmetic``.

    Args:
        name: of the model.
        sources: its C files.
    """
    has_floats = any(map(_FLOAT.search, sources.values()))
    return (_PROBE if has_floats else _NO_FLOATS).substitute(name=name)


def add_guard(file: str, text: str) -> str:
    """Return a file with the options that decide its results, where it computes with floats."""
    return _GUARD + text if file.endswith(".c") and _FLOAT.search(text) else text
