"""Clamping an int32 in C."""

from __future__ import annotations

from covp.chip.cores import Core


def _saturates(core: Core, low: int, high: int) -> bool:
    """Return whether a single SSAT clamps to the range."""
    whole = (low, high) in ((-128, 127), (-32768, 32767))
    return core.architecture == "arm" and core.has("mull") and whole


def clamp(core: Core, name: str, low: int, high: int) -> str:
    """Return C statements that clamp a variable.

    Args:
        core: uses SSAT where that suffices.
        name: of the int32_t variable.
        low, high: the limits, both allowed; ``high`` wins where it is below ``low``.
    """
    if _saturates(core, low, high):
        # the macro __ssat of GCC's arm_acle.h converts unsigned to signed without saying so
        return f"{name} = (int32_t)__builtin_arm_ssat({name}, {high.bit_length() + 1});"
    return f"{name} = {name} < {low} ? {low} : {name}; {name} = {name} > {high} ? {high} : {name};"


def clamp_includes(core: Core, low: int, high: int) -> str:
    """Return the header that `clamp` needs, or nothing."""
    return "#include <arm_acle.h>" if _saturates(core, low, high) else ""
