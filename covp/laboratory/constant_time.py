"""`constant_time`: whether a kernel takes the same time for all inputs, and where calls part."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from covp.base.arguments import demand_count
from covp.base.array_text import text
from covp.errors import CovpError, KernelError
from covp.laboratory.coverage import Coverage, CoverageData
from covp.laboratory.drawing import Arguments, array_of, as_arguments, explore, mutate_arguments
from covp.laboratory.inside import Span, copies, inside
from covp.laboratory.kernel import Kernel
from covp.laboratory.meter import Figure, Meter

_MOST_MOVES = 3
_SIMPLER = 600
"""Calls that are spent on a simpler pair, after Hypothesis has found one."""
_LONG = 300
"""Letters of a pair from which only its differences are shown."""


class TimeDifference(KernelError):
    """Two inputs for which a kernel takes different times.

    Attributes:
        inputs: the arguments of both calls.
        counts: the instructions, or cycles, of both.
        where: the last instruction that both calls execute alike, as "function+0x12 (file.c:7)";
            "" where it is not known.
    """

    def __init__(
        self, message: str, inputs: tuple[Arguments, Arguments], counts: tuple[int, int], where: str
    ) -> None:
        super().__init__(message)
        self.inputs, self.counts, self._where = inputs, counts, where

    @property
    def where(self) -> str:
        """The last instruction before the two calls diverge."""
        return self._where or ""


class ConstantTime(int):
    """The figure that all calls had in common; str() says how thorough the search was.

    Attributes:
        of: "instructions" or "cycles".
        examples: how many pairs of inputs were tried.
        one_way: "file.c:12" of the conditional branches that all calls left in the same way, in the
            order of the source; another input may take the other way. Also () where the device
            does not count branches.
    """

    of: Figure
    examples: int
    one_way: tuple[str, ...]

    def __new__(
        cls, count: int, of: Figure, examples: int, one_way: tuple[str, ...]
    ) -> ConstantTime:
        """Make the number with its attributes."""
        self = super().__new__(cls, count)
        self.of, self.examples, self.one_way = of, examples, one_way
        return self

    def __str__(self) -> str:
        text = f"{int(self)} {self.of} in {self.examples} examples"
        branches = "branch" if len(self.one_way) == 1 else "branches"
        seen = f", {branches} at {', '.join(self.one_way)} seen one way only"
        return text + seen * bool(self.one_way)

    __repr__ = __str__


class _Differ(Exception):
    def __init__(self, one: Arguments, other: Arguments) -> None:
        self.pair = one, other


def constant_time(
    kernel: Kernel,
    inputs: Any,
    of: Figure = "instructions",
    *,
    examples: int = 500,
    seed: int = 0,
    mutate: bool = True,
) -> ConstantTime:
    """Look for two inputs for which a kernel takes different times.

    ::

        constant_time(equal, (arrays("uint8", 16), arrays("uint8", 16), 16))

    Sizes are not secret: an argument that the time may depend on is the same in all inputs. That
    none is found proves nothing: what the result names as seen one way only, such as the comparison
    with a value that no input had, needs inputs of its own.

    Args:
        kernel: to be called; each call starts with the module's variables as they are now.
        inputs: a Hypothesis strategy of tuples of arguments; or a tuple with a strategy, or a
            value, for each argument.
        of: "instructions", which are exact, or "cycles" of the core's timing model, which on some
            cores depend on operands of divisions and multiplications as well.
        examples: how many pairs are tried.
        seed: of the search, which gives the same result each time.
        mutate: also try drawn arrays with elements moved about, and taken from each other: equal
            ones, equal beginnings. False where a strategy promises more than a range of elements.

    Returns:
        the figure, with how many pairs were tried and which branches were seen one way only.

    Raises:
        TimeDifference: a KernelError with the simplest pair that was found, both figures, and where
            the calls part.
        UsageError: the inputs are no strategy, or the device does not count.
        DeviceFault: the kernel faulted.
    """
    demand_count("examples", examples)
    demand_count("seed", seed)
    meter, strategy = Meter(kernel, of), as_arguments(inputs)
    first: list[tuple[Arguments, int]] = []
    pairs_tried = 0

    def compare(pair: tuple[Arguments, Arguments]) -> None:
        nonlocal pairs_tried
        one, other = pair
        counts = meter(one), meter(other)
        pairs_tried += 1
        if not first:
            first.append((copies(one), counts[0]))
        if counts[0] != counts[1]:
            raise _Differ(one, other)
        if counts[0] != first[0][1]:
            raise _Differ(first[0][0], one)

    pairs = _pairs(strategy, mutate)
    session = meter.kernel.session
    seen = Coverage(session) if session.device.abilities.code is not None else None
    try:
        with seen or nullcontext():
            explore(pairs, compare, examples, seed)
    except _Differ as difference:
        raise _describe_difference(meter, _shrunk(meter, pairs, difference.pair, seed)) from None
    return ConstantTime(first[0][1], of, pairs_tried, _one_way(seen))


def _one_way(seen: Coverage | None) -> tuple[str, ...]:
    """Return the branches, by line, of which one of the two ways was taken each time."""
    data = CoverageData() if seen is None else seen.data
    return tuple(
        f"{_file_name(name, name in data.texts)}:{line}"
        for name, file in data.files.items()
        for line, branches in sorted(file.branches_by_line.items())
        if any((branch.taken == 0) != (branch.untaken == 0) for branch in branches)
    )


def _file_name(path: str, is_text: bool) -> str:
    """Return the name of a file in faults: of code given as text, without its content's key."""
    stem = Path(path).stem.rpartition("-")[0] if is_text else Path(path).stem
    return stem + Path(path).suffix


@st.composite
def _pairs(
    draw: st.DrawFn, strategy: st.SearchStrategy[Arguments], mutate: bool
) -> tuple[Arguments, Arguments]:
    """Draw two inputs, the second one often made from the first."""
    one, other = draw(strategy), draw(strategy)
    moves = draw(st.integers(0, _MOST_MOVES)) if mutate else 0
    if not moves:
        return one, other
    chance = random.Random(draw(st.integers(0, 2**16)))
    made = one
    for _ in range(moves):
        made = mutate_arguments(made, other, chance)
    return one, made


def _shrunk(
    meter: Meter,
    pairs: st.SearchStrategy[tuple[Arguments, Arguments]],
    found: tuple[Arguments, Arguments],
    seed: int,
) -> tuple[Arguments, Arguments]:
    """Find the simplest pair: by Hypothesis, then by making the second one like the first."""

    def compare(pair: tuple[Arguments, Arguments]) -> None:
        if meter(pair[0]) != meter(pair[1]):
            raise _Differ(*pair)

    try:
        explore(pairs, compare, 200, seed, shrink=True)
    except _Differ as difference:
        found = difference.pair
    one, other = copies(found[0]), copies(found[1])
    left = meter.calls + _SIMPLER
    for changed in _nearer(one, other):
        if meter.calls >= left:
            break
        if meter(changed[0]) != meter(changed[1]):
            for old, new in zip((one, other), changed, strict=True):
                _assign(old, new)
    return one, other


def _nearer(one: Arguments, other: Arguments) -> Iterator[tuple[Arguments, Arguments]]:
    """Yield pairs with fewer differences than the present one, and then with fewer values."""
    for position in range(len(one)):
        left, right = array_of(one[position]), array_of(other[position])
        if left is None or right is None or left.shape != right.shape:
            continue
        for part in _parts(left.size):
            yield _make_alike(one, other, position, part, None)
        for part in _parts(left.size):
            for value in sorted({0, left.reshape(-1)[0].item()}, key=abs):
                if value or (left == 0).any() or (right == 0).any():
                    yield _make_alike(one, other, position, part, value)


def _parts(size: int) -> Iterator[slice]:
    step = size
    while step:
        yield from (slice(at, at + step) for at in range(0, size, step))
        step //= 2


def _make_alike(
    one: Arguments, other: Arguments, position: int, part: slice, value: Any
) -> tuple[Arguments, Arguments]:
    """Copy both with a part of an argument alike: ``value``, or that of the first one."""
    changed = copies(one), copies(other)
    left, right = array_of(changed[0][position]), array_of(changed[1][position])
    assert left is not None and right is not None
    flat, whole = left.reshape(-1).copy(), right.reshape(-1).copy()
    if value is not None:
        flat[part] = value
    whole[part] = flat[part]
    left[...], right[...] = flat.reshape(left.shape), whole.reshape(right.shape)
    return changed


def _assign(old: Arguments, new: Arguments) -> None:
    for mine, better in zip(old, new, strict=True):
        array, other = array_of(mine), array_of(better)
        if array is not None and other is not None:
            array[...] = other


def _describe_difference(meter: Meter, pair: tuple[Arguments, Arguments]) -> TimeDifference:
    counts = meter(pair[0]), meter(pair[1])
    where = find_divergence(meter, *pair)
    shown = [text(tuple(array_of(a) if array_of(a) is not None else a for a in p)) for p in pair]
    if sum(map(len, shown)) > _LONG:
        shown = ["one input", f"another one, which differs in {_differences(meter, *pair)}"]
    message = (
        f"{meter.kernel.name} takes {counts[0]} {meter.of} for {shown[0]} and {counts[1]} for "
        f"{shown[1]}"
    )
    message += f": the calls part after {where}" if where else ""
    return TimeDifference(message, pair, counts, where)


def _differences(meter: Meter, one: Arguments, other: Arguments) -> str:
    """Return the arguments that differ, by name; of arrays the first element."""
    found = []
    for parameter, left, right in zip(meter.kernel.signature.parameters, one, other, strict=True):
        a, b = array_of(left), array_of(right)
        if a is None or b is None:
            if left != right:
                found.append(f"{parameter.name} ({left} and {right})")
        elif a.shape != b.shape:
            found.append(f"the shape of {parameter.name} ({a.shape} and {b.shape})")
        elif a.tobytes() != b.tobytes():
            at = int(np.flatnonzero(a.reshape(-1) != b.reshape(-1))[:1].sum())
            values = a.reshape(-1)[at], b.reshape(-1)[at]
            found.append(f"{parameter.name}[{at}] ({values[0]} and {values[1]})")
    return ", ".join(found)


_BACK = 500
"""Instructions in which the caller of a function without debug information is looked for."""


class _Here(BaseException):
    """The exception that ends a call whose rest is not of interest."""


def find_divergence(meter: Meter, one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """Find the last instruction that two calls both execute: "function+0x12 (file.c:7)".

    With the function of known source that has called it, where it is not the kernel itself.

    It is searched for by halves: where they part more than once, one of those places is found. Of
    "instructions" they part by the next pc, of "cycles" by the time, too.

    Args:
        meter: of the kernel.
        one, other: arguments whose figures differ.

    Returns:
        "" where it cannot be determined: on a device that is not virtual.
    """
    device = meter.kernel.session.device.abilities.emulator
    if device is None:
        return ""
    low, high = 0, min(_length(meter, one), _length(meter, other))
    if _after(meter, one, high) == _after(meter, other, high):
        return ""
    while high - low > 1:  # alike after low, not after high
        middle = (low + high) // 2
        if _after(meter, one, middle) == _after(meter, other, middle):
            low = middle
        else:
            high = middle
    path = _path(meter, one, low)
    places = [device.board.names.symbols.locate(pc) for pc in reversed(path)]
    symbol, source = places[0]
    if source:
        return f"{symbol} ({source})"
    known = next((f"{name} ({line})" for name, line in places if line), "")
    return f"{symbol}, called by {known}" if known else symbol or ""


def _path(meter: Meter, arguments: tuple[Any, ...], instructions: int) -> list[int]:
    """Return the pc after ``instructions`` of the kernel, and before it those of the last ones."""
    path: list[int] = []

    def body(span: Span) -> None:
        before = max(0, instructions - _BACK)
        path.append(span.forward(before))
        for _ in range(instructions - before):
            path.append(span.step(path[-1]))
        raise _Here

    _run(meter, arguments, body)
    return path


def _length(meter: Meter, arguments: tuple[Any, ...]) -> int:
    meter.prepare()
    meter.kernel(*copies(arguments))
    return meter.kernel.latest.instructions or 0


def _after(meter: Meter, arguments: tuple[Any, ...], instructions: int) -> tuple[int, int]:
    """Return the pc after ``instructions`` of the kernel, and the cycles if they are compared."""
    found = (0, 0)

    def body(span: Span) -> None:
        nonlocal found
        before = span.device.core.cycles
        pc = span.forward(instructions)
        found = (pc, span.device.core.cycles - before if meter.of == "cycles" else 0)
        raise _Here

    _run(meter, arguments, body)
    return found


def _run(meter: Meter, arguments: tuple[Any, ...], body: Callable[[Span], None]) -> None:
    meter.prepare()
    with suppress(_Here, CovpError), inside(meter.kernel, body):
        meter.kernel(*copies(arguments))
    meter.kernel.session.device.reset()  # it may have ended in the middle of an IT block
