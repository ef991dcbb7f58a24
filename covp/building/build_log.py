"""`log_build`: what a build came to, for those who work on covp; see `covp.base.debug`."""

from __future__ import annotations

import logging

from covp.codegen.lifetimes import arena_tensors
from covp.codegen.program import Program

_placement = logging.getLogger("covp.placement")
_memory = logging.getLogger("covp.memory")
_code = logging.getLogger("covp.code")


def log_build(program: Program) -> None:
    """Log where layers run and what lies in the arena at INFO, the C at DEBUG.

    Nothing is made that no handler wants.
    """
    name = program.name
    if _placement.isEnabledFor(logging.INFO):
        for layer in program.layers:
            how = f", {layer.schedule}" * bool(layer.schedule)
            _placement.info(
                "%s: layer %d %s %s: on %s%s",
                *(name, layer.index, layer.op, layer.name, layer.target, how),
            )
    if _memory.isEnabledFor(logging.INFO):
        numbers = [layer.index for layer in program.layers] or [0]
        for one in arena_tensors(program):
            _memory.info(
                "%s: %s %s: bytes %d to %d, layers %d to %d",
                *(name, one.kind, one.name, one.offset, one.end),
                *(numbers[one.first], numbers[one.last]),
            )
    if _code.isEnabledFor(logging.DEBUG):
        for file, text in program.sources.items():
            _code.debug("/* %s */\n%s", file, text)
