"""Describe where models and figures come from, in tables and reports."""

from __future__ import annotations

from covp.device.stop import Source
from covp.runtime.profile import Profile


def model_note(source: str) -> str:
    """Return the note beside a model's name: a synthetic one is not an official model."""
    return "SYNTHETIC stand-in: random weights" if source == "synthetic" else ""


def cycles_column(source: Source | None) -> str:
    """Return the title of a column of cycles."""
    short = {"estimated": "est."}
    return "cycles" if source is None else f"cycles ({short.get(source.kind, source.kind)})"


def run_time(profile: Profile, clock_hz: int) -> str:
    """Return the run time with its source, e.g. "estimated 76.07 ms at 100 MHz (rv32 table, ...)".

    Empty where neither time nor cycles are known.
    """
    sources = profile.sources
    source = sources.cycles if profile.measured is None else sources.seconds
    if profile.seconds is None or source is None:
        return ""
    clock = f" at {clock_hz / 1e6:g} MHz" if profile.cycles else ""
    details = _details(source)
    return f"{source.kind} {profile.seconds * 1e3:,.2f} ms{clock}{f' ({details})' * bool(details)}"


def _details(source: Source) -> str:
    model = f"{source.model} table" if source.kind == "estimated" else source.model
    unknown = "unchecked" if source.kind == "estimated" else ""
    error = unknown if source.error is None else f"error below {source.error:.1%}"
    return ", ".join(filter(None, (model, source.assumes, error)))
