"""`Against`: what a model's layers are compared with, as a user writes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from covp.base.plugins import call_hook, load_file
from covp.codegen.program import Program
from covp.errors import UsageError, near_misses

Kind = Literal["reference", "toolchain", "device", "platform", "build"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Against:
    """The other side of a comparison.

    Attributes:
        kind: "reference": numpy; "toolchain", "device", "platform": the same model built by
            another compiler, on another device, for another platform; "build": a program that a
            Python file makes of the present one.
        value: of the kind: "gcc", "rtl", "stm32l4r5", "other.py"; empty for the reference.
    """

    kind: Kind = "reference"
    value: str = ""

    @staticmethod
    def parse(text: str) -> Against:
        """Return the comparison that a user's text names.

        Args:
            text: "reference", "toolchain gcc", "toolchain:gcc" and the like.

        Raises:
            UsageError: it names none.
        """
        kind, value = [*re.split(r"[:\s]\s*", text.strip(), maxsplit=1), ""][:2]
        if kind not in KINDS:
            raise UsageError(f"unknown comparison {text!r}:", hint=near_misses(kind, KINDS))
        if bool(value) != (kind != "reference"):
            raise UsageError(
                f"comparison {text.strip()!r}: write reference, toolchain gcc, device rtl, "
                "platform NAME or build FILE.py"
            )
        return Against(kind, value)

    def __str__(self) -> str:
        return f"{self.kind} {self.value}".strip()


def built_by_file(path: str, program: Program) -> Program:
    """Return the program that ``build(program)`` of a Python file makes of another one.

    Args:
        path: of the file.
        program: that the function is given.

    Raises:
        UsageError: there is no such file or function, or it returns something else.
    """
    if not Path(path).is_file():
        raise UsageError("no such file", where=path)
    module = load_file(path, UsageError)
    build = cast("Callable[[Program], Any] | None", getattr(module, "build", None))
    if build is None:
        raise UsageError("has no function build(program) that returns a program", where=path)
    made = call_hook(path, "build", build, program, error=UsageError)
    if not isinstance(made, Program):
        raise UsageError(f"build(program) must return a program, not {made!r:.80}", where=path)
    return made
