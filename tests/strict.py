"""The compiler options under which C that leaves covp has to compile without a warning."""

STRICT = (
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wcast-align",
    "-Wshadow",
    "-Wundef",
    "-Werror",
)
STRICT_GCC = (*STRICT, "-Wcast-align=strict")
"""With casts that increase alignment where the core would allow them: only GCC warns of these."""
