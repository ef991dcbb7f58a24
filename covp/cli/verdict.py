"""Results of comparisons with the reference, and first differences, as text for reports."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from covp.base.plural import pluralize
from covp.evaluation import Evaluation
from covp.evaluation.check import default_level
from covp.graph.equality import FLOAT_TOLERANCE

_PAGE = "docs/accuracy.md"
_DEFAULTS = {"device": "virtual", "toolchain": "zig", "optimize": "cycles", "max_scratch": None}


def reproduction(model: str, platform: str, accelerators: tuple[str, ...], seed: int) -> str:
    """Return the `covp run` that shows a difference again, from the options of the present command.

    The level of its check is left out, see `difference_lines`.

    Args:
        model, platform: as they were given.
        accelerators: of the run in question.
        seed: of its inputs.
    """
    given = click.get_current_context().params
    words = ["covp", "run", model, "-p", platform]
    words += [word for name in accelerators for word in ("-a", name)]
    for path in given.get("inputs") or ():
        words += ["--input", str(path)]
    for name, extents in (given.get("shapes") or {}).items():
        words += ["--shape", f"{name}={','.join(map(str, extents))}"]
    for before, after in (given.get("states") or {}).items():
        words += ["--state", f"{before}={after}"]
    if given.get("streaming"):
        words.append(f"--streaming={given['streaming']}")
    words += ["--seed", str(seed)]
    for name, default in _DEFAULTS.items():
        if given.get(name, default) != default:
            words += [f"--{name.replace('_', '-')}", str(given[name])]
    if not given.get("tuned", True):
        words.append("--untuned")
    return shlex.join(words)


def equality(results: Sequence[Evaluation]) -> str:
    """Return a cell of "bit-exact": integers match to the bit, floats within the tolerance."""
    if any(result.mismatches for result in results):
        return "OUTPUTS DIFFER"
    if any(result.check.mismatch for result in results):
        return "LAYERS DIFFER"
    if not all(result.matches_reference for result in results):
        return "SOURCE DIFFERS"
    if any(result.check.level == "none" for result in results):
        return "not checked"
    is_float = any(result.check.worst_error is not None for result in results)
    return f"within {FLOAT_TOLERANCE:g}" if is_float else "yes"


def amount(results: Sequence[Evaluation]) -> str:
    """Return how much was compared in all runs that are right, for the line below a table."""
    checks = [result.check for result in results if result.matches_reference]
    if not checks or checks[0].level == "none":
        return ""
    if checks[0].level == "output":
        return "checked: the outputs of 1 input; --check layers compares each layer"
    layers, seconds = sum(c.layers for c in checks), sum(c.seconds for c in checks)
    compared = f"{pluralize(layers, 'layer')} x {pluralize(checks[0].inputs, 'input')}"
    return f"checked: {compared} beside the reference, in {seconds:.2f} s"


def verdict_lines(result: Evaluation, again: str) -> list[str]:
    """Return what was compared and how it went, one line each.

    Args:
        result: of one run.
        again: the command that shows a difference again, see `reproduction`.
    """
    check = result.check
    if not result.matches_reference:
        elements = sum(output.size for output in result.outputs)
        wrong = f"OUTPUTS DIFFER from the reference: {result.mismatches} of {elements} elements"
        return [*([wrong] if result.mismatches else []), *difference_lines(result, again)]
    line = result.verdict
    if check.level == "layers":
        memory = ", every load and store allowed" if check.sanitized else ""
        defined = ", no undefined behaviour" if check.ubsan else ""
        line += f"{memory}{defined}, checked in {check.seconds:.2f} s"
    if result.oracle and check.level != "none":
        line += f"; {result.oracle} arithmetic"
    if check.level == "output" and default_level(result.device) == "output":
        line += f" ({result.device} is slow; --check layers compares each layer)"
    return [line, *source_lines(result)]


def source_lines(result: Evaluation) -> list[str]:
    """Return how the model's file was compared; empty if that was neither done nor requested."""
    source = result.check.source
    if source is None or (source.skipped is not None and result.check.level != "source"):
        return []
    return [str(source)]


def difference_lines(result: Evaluation, again: str) -> list[str]:
    """Return the first difference and how to see it again; nothing where all is right.

    Args:
        result: of one run.
        again: the command, see `reproduction`.
    """
    mismatch, source = result.check.mismatch, result.check.source
    page = f"what it means: {_PAGE}"
    if mismatch is not None:
        return [f"NOT BIT-EXACT: {mismatch}", f"again: {again} --check layers", page]
    if source is not None and not source.holds:
        return [f"SOURCE DIFFERS: {source}", f"again: {again} --check source", page]
    return []
