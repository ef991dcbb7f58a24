"""`interrupted`, `check_interrupts`: an interrupt at instruction boundaries of a kernel's call."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from numpy.typing import NDArray

from covp.base.arguments import demand, demand_count
from covp.errors import KernelError, UsageError
from covp.laboratory.aftermath import Aftermath, find_failure, place_of, same
from covp.laboratory.inside import emulator_of
from covp.laboratory.interrupt_bench import LIMIT, InterruptBench, InterruptedCall
from covp.laboratory.kernel import Kernel
from covp.runtime.module import Function, Module

At = Literal["every", "random"] | Iterable[int]
"""Boundaries: instructions of the call that retire before the interrupt comes."""


def interrupted(
    kernel: Kernel,
    arguments: Sequence[Any] = (),
    *,
    handler: str | Function,
    at: At = "every",
    examples: int = 100,
    seed: int = 0,
    variables: Iterable[str] | None = None,
    line: int | None = None,
    priority: int | None = None,
    limit: int = LIMIT,
) -> Iterator[InterruptedCall]:
    """Call a kernel once for each of some boundaries, with one interrupt there.

    ::

        for call in interrupted(read_clock, handler="tick_isr"):
            assert call.result in (0x0000_FFFF, 0x0001_0000)

    The core enters the handler as it enters an interrupt. Arm: the NVIC stacks the registers and
    takes the vector, once PRIMASK, BASEPRI, FAULTMASK and the line's enable bit let it. RISC-V:
    the machine external interrupt goes to mtvec, once mstatus.MIE and mie.MEIE let it; from there
    a stub saves the registers that C functions may change. Each call starts from the same state;
    afterwards the session is as before.

    Args:
        kernel: on a virtual device.
        arguments: of each call, as the kernel takes them; arrays are copied for it.
        handler: a function without arguments, or with the attribute interrupt: the name of one of
            the kernel's module, or ``module["name"]``.
        at: "every" boundary, "random": ``examples`` of them, or their numbers: 0 is before the
            first instruction.
        examples, seed: of "random".
        variables: of the module, to be read after each call; all of them by default.
        line: of the interrupt, 0 to 31; by default one that no peripheral has.
        priority: on Arm, 0 is the most urgent; the least urgent by default.
        limit: instructions after which a call does not end.

    Raises:
        KernelError: a call with an interrupt faults, does not end, or returns with interrupts
            masked; the text names the boundary.
        UsageError: not a virtual device, no such handler, or the call does not end without the
            interrupt and ``at`` does not say where to try it.
    """
    chosen = (variables, line, priority, limit)
    with _bench(kernel, arguments, handler, *chosen) as bench:
        for boundary in _boundaries(bench, bench.length(), at, examples, seed):
            yield bench.run(boundary)


def check_interrupts(
    kernel: Kernel,
    arguments: Sequence[Any] = (),
    *,
    handler: str | Function,
    expected: Any = None,
    at: At = "every",
    examples: int = 100,
    seed: int = 0,
    variables: Iterable[str] | None = None,
    line: int | None = None,
    priority: int | None = None,
    limit: int = LIMIT,
) -> int:
    """Check that an interrupt does no harm, wherever it comes.

    Without ``expected`` a call has to leave what it leaves when the interrupt comes before the
    call, or what it leaves when it comes after it: its result, its arrays, and the variables of the
    module. Updates that are lost, values that are half old and half new, state that the handler
    damages, and calls that do not end any more are neither. A kernel that is meant to see the
    interrupt in the middle needs ``expected``.

    Args:
        expected: a function that takes the `InterruptedCall` and returns False, or raises, where it
            is wrong; or the value that the kernel has to return.
        kernel, arguments, handler, at, examples, seed, variables, line, priority, limit: see
            `interrupted`.

    Returns:
        how many boundaries were tried.

    Raises:
        KernelError: with the first boundary that does harm: instructions, function and source line
            on both sides, and what is different.
        UsageError: see `interrupted`.
    """
    chosen = (variables, line, priority, limit)
    with _bench(kernel, arguments, handler, *chosen) as bench:
        length = bench.length()
        judge: Judge = functools.partial(find_failure, expected=expected)
        if expected is None:
            judge = _serial(bench, length)
        tried = 0
        for boundary in _boundaries(bench, length, at, examples, seed):
            call = bench.run(boundary)
            wrong = judge(call)
            if wrong:
                where = bench.where(boundary if call.taken is None else call.taken)
                raise KernelError(f"{kernel.name} gives a wrong result with {where}: {wrong}")
            tried += 1
    return tried


@contextmanager
def _bench(
    kernel: Kernel,
    arguments: Sequence[Any],
    handler: str | Function,
    variables: Iterable[str] | None,
    line: int | None,
    priority: int | None,
    limit: int,
) -> Iterator[InterruptBench]:
    demand("kernel", kernel, Kernel, "a covp.testing.Kernel")
    demand("handler", handler, (str, Function), "the name of a function, or a function")
    demand_count("limit", limit)
    from covp.laboratory.handlers import Handler  # which imports the emulator

    made = Handler(emulator_of(kernel), *_place(kernel, handler), line, priority)
    try:
        bench = InterruptBench(kernel, arguments, made, variables, limit)
        try:
            yield bench
        finally:
            bench.close()
    finally:
        made.close()


def _place(kernel: Kernel, handler: str | Function) -> tuple[Module, str]:
    """Return the module and name of a handler."""
    if isinstance(handler, str):
        return kernel.function.module, handler
    if handler.module.session is not kernel.session:
        raise UsageError(f"{handler.signature.name} is in another session than {kernel.name}")
    return handler.module, handler.signature.name


def _boundaries(
    bench: InterruptBench, length: int | None, at: At, examples: int, seed: int
) -> Sequence[int]:
    if not isinstance(at, str):
        return list(at)
    if at not in ("every", "random"):
        raise UsageError(f'at={at!r}: "every", "random", or the numbers of the boundaries')
    last = bench.waiting_from() if length is None else length
    if at == "every" or last < examples:
        return range(last + 1)
    return sorted(random.Random(seed).sample(range(last + 1), examples))


Judge = Callable[[InterruptedCall], str]
"""What is wrong with a call, "" where nothing is."""


def _serial(bench: InterruptBench, length: int | None) -> Judge:
    """Demand that the interrupt looks as if it had come before the call, or after it."""
    first = bench.run(0)
    references = {"before": first, "after": first if length is None else bench.run(length)}
    alone = None if length is None else bench.alone()

    def judge(call: InterruptedCall) -> str:
        if call.taken is None and call.boundary != length:
            allowed = {"without": alone or first}
        else:
            allowed = dict(references)
        return _difference(bench.kernel, call, allowed)

    return judge


def _difference(kernel: Kernel, call: Aftermath, allowed: dict[str, Aftermath]) -> str:
    """Say what a call leaves that none of the allowed ones leaves; "" if it is as one of them."""
    got = call.parts(kernel)
    differing: dict[str, dict[str, NDArray[Any]]] = {}
    for when, outcome in allowed.items():
        parts = outcome.parts(kernel)
        different = {name: one for name, one in parts.items() if not same(got[name], one)}
        if not different:
            return ""
        differing[when] = different
    common = [name for name in got if all(name in one for one in differing.values())]
    if common:
        return _unlike(common[0], got, differing)
    (early, late) = (next(iter(one)) for one in differing.values())
    return (
        f"{late} is as with the interrupt before the call, {early} as with the interrupt after it"
    )


def _unlike(
    name: str, got: dict[str, NDArray[Any]], allowed: dict[str, dict[str, NDArray[Any]]]
) -> str:
    """Describe a part that is as in none of the allowed outcomes."""
    found = {when: place_of(got[name], one[name]) for when, one in allowed.items()}
    if "without" in found:
        place, is_, right = found["without"]
        return f"{name}{place} is {is_}, {right} without the interrupt"
    (place, is_, early), (other, _, late) = found["before"], found["after"]
    if (place, early) == (other, late):
        return f"{name}{place} is {is_}, {early} with the interrupt before or after the call"
    at = "" if other == place else f"{name}{other} is "
    return (
        f"{name}{place} is {is_}, {early} with the interrupt before the call, "
        f"{at}{late} with the interrupt after it"
    )
