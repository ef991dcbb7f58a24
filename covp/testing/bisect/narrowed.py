"""`find_cause`: from a wrong layer to a function and a line, in the most telling way."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from covp.errors import AcceleratorError, CovpError, DeviceFault
from covp.testing.bisect.bench import Bench
from covp.testing.bisect.origin import Cause, Spot, origin
from covp.testing.bisect.parting import parting_of_arena, parting_of_steps
from covp.testing.bisect.walk import Trial

PLAIN = "-O0"


def find_cause(trial: Trial) -> Cause:
    """Find the cause of a wrong layer.

    The line is most exact without optimization, so the layer is compiled that way, too; where it is
    right then, the two builds of it are compared.

    Args:
        trial: a wrong layer.
    """
    if trial.kind == "fault":
        return _of_fault(trial)
    with ExitStack() as stack:
        here = _watchable(trial, stack)
        if here is None:
            return Cause("unknown", None, note="the device does not show its stores")
        plain = _plain(here, stack)
        found = None
        if trial.other is not None:
            found = _of_two(here, plain, trial.other, stack)
        elif plain is not None and _is_wrong(here) and not _is_wrong(plain):
            cause = parting_of_arena(here, plain.bench, plain.position)
            note = f"right with {PLAIN}: undefined behaviour in C, or a fault of the compiler"
            found = replace(cause or origin(here, here.got()), note=note)
        if found is not None:
            return found
        if plain is not None and _is_wrong(plain):
            return _after(origin(plain, plain.got(), steps=True), trial)
        return _after(origin(here, trial.got()), trial)


def _after(cause: Cause, trial: Trial) -> Cause:
    """Return the cause, with a word where the device itself, not its virtual twin, is wrong."""
    if trial.bench.can_watch:
        return cause
    return replace(cause, note=f"found on a virtual device beside {trial.bench.device}")


def _of_fault(trial: Trial) -> Cause:
    error = trial.error
    if not isinstance(error, DeviceFault):
        target = trial.bench.program.layers[trial.position].target
        return Cause("fault", None, accelerator=target, note=str(error))
    place = error.call_stack[0] if error.call_stack else ""
    if not place and error.symbol:
        function = error.symbol.partition("+")[0]
        place = f"{function} ({error.source})" if error.source else function
    spot = Spot.of(place, trial.bench.program) if place else None
    return Cause("fault", spot, call_stack=error.call_stack, note=str(error))


def _watchable(trial: Trial, stack: ExitStack) -> Trial | None:
    """Return the trial on a device that shows its stores, its own or a virtual twin."""
    if trial.bench.can_watch:
        return trial
    if trial.bench.program.platform.core.architecture == "x86":
        return None
    bench = Bench(trial.bench.program, "virtual", trial.bench.toolchain, trial.position)
    return replace(trial, bench=stack.enter_context(bench))


def _plain(trial: Trial, stack: ExitStack) -> Trial | None:
    """Return the layer alone, without optimization; None where it cannot be compiled or run so."""
    try:
        bench = stack.enter_context(trial.bench.recompiled(trial.position, PLAIN))
        bench.run(trial.position, trial.image)
    except CovpError:
        return None
    return replace(trial, bench=bench)


def _is_wrong(trial: Trial) -> bool:
    assert trial.wanted is not None
    try:
        return bool(trial.law(trial.got(), trial.wanted).size)
    except (DeviceFault, AcceleratorError):
        return True


def _of_two(
    here: Trial, plain: Trial | None, other: tuple[Bench, int], stack: ExitStack
) -> Cause | None:
    """Find where two builds diverge; None where their executions cannot be compared."""
    bench, position = other
    if not _alike(here, bench, position):
        return None
    is_wrong = plain is not None and _is_wrong(plain)
    if plain is not None and is_wrong and here.bench.toolchain == bench.toolchain:
        if origin(plain, plain.got()).spot is None:  # nothing stores to the tensor
            return None
        theirs = _plain(replace(here, bench=bench, position=position), stack)
        if theirs is not None and not _is_wrong(theirs):
            found = parting_of_steps(plain, theirs.bench, position)
            if found is not None:
                return found
    if not bench.can_watch:
        bench = stack.enter_context(bench.recompiled(position))
    found = parting_of_arena(here, bench, position)
    if found is not None and plain is not None and is_wrong:
        return replace(origin(plain, plain.got(), steps=True), other=found.other)
    return found


def _alike(here: Trial, bench: Bench, position: int) -> bool:
    """Return whether two builds have the same arena and can run on a virtual device."""
    mine, its = here.bench.program, bench.program
    return (
        mine.arena_bytes == its.arena_bytes
        and mine.layers[here.position].arguments == its.layers[position].arguments
        and mine.platform.core.architecture == its.platform.core.architecture != "x86"
    )
