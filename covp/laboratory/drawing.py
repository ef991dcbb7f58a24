"""Examples of kernels' arguments: a search with its targets, outside of a test.

`mutate_arguments` changes an example into one that a strategy could have drawn as well. Elements
come from the example itself or from another one that was drawn, at any place of the same argument,
or of another argument of the same type and shape; or they are numbers between such elements. So
they stay within the range of the strategy; what a strategy promises beyond it (sorted arrays, even
numbers) they do not keep.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.laboratory.buffers import Buffer
from covp.laboratory.inside import copies

_SHRINK = (Phase.generate, Phase.shrink)
_TARGET = (Phase.generate, Phase.target)


def explore(
    strategy: st.SearchStrategy[Any],
    look: Callable[[Any], None],
    examples: int,
    number: int,
    *,
    shrink: bool = False,
    target: bool = False,
) -> None:
    """Call a function with examples of a strategy.

    Args:
        strategy: of the examples.
        look: what is called; with ``target`` it may call `hypothesis.target`.
        examples: how many at most.
        number: the seed.
        shrink: an exception of ``look`` is raised for the simplest example that raises it.
        target: examples are also mutated towards what it targets.
    """
    phases = _SHRINK if shrink else _TARGET if target else (Phase.generate,)

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=phases,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(example: Any) -> None:
        look(example)

    run()


def as_arguments(inputs: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    """Make a strategy of the arguments of calls, from what users give as ``inputs``.

    Raises:
        UsageError: neither a strategy nor a tuple of strategies and values.
    """
    if isinstance(inputs, st.SearchStrategy):
        return inputs.map(_tuple)
    if isinstance(inputs, tuple):
        each = (one if isinstance(one, st.SearchStrategy) else st.just(one) for one in inputs)
        return st.tuples(*each)
    raise UsageError(
        "inputs must be a Hypothesis strategy of the kernel's arguments, or a tuple with a "
        f"strategy or a value for each; not a {type(inputs).__name__}"
    )


def _tuple(drawn: Any) -> tuple[Any, ...]:
    return tuple(drawn) if isinstance(drawn, (tuple, list)) else (drawn,)


Arguments = tuple[Any, ...]
Array = NDArray[Any]


def array_of(argument: Any) -> Array | None:
    """Return the array of an argument, None where it is none."""
    if isinstance(argument, Buffer):
        return argument.array
    return argument if isinstance(argument, np.ndarray) else None


def mutate_arguments(arguments: Arguments, other: Arguments, chance: random.Random) -> Arguments:
    """Copy an example with one of its arguments changed.

    Args:
        arguments: the example.
        other: another one, whose elements may be taken; its numbers where its arrays have the
            shapes of the example's.
        chance: decides.
    """
    changed = list(copies(arguments))
    places = [at for at, one in enumerate(changed) if _has_elements(one)]
    if _shapes(arguments) == _shapes(other):
        places += [
            at for at, one in enumerate(changed) if array_of(one) is None and one != other[at]
        ]
    if not places:
        return tuple(changed)
    at = places[chance.randrange(len(places))]
    target, donor = array_of(changed[at]), array_of(other[at])
    if target is None:
        changed[at] = other[at]
        return tuple(changed)
    alike = [array_of(one) for one in changed]
    twins = [a for a in alike if a is not None and _kind(a) == _kind(target)]
    values = target.reshape(-1).copy()
    chosen = _Elements(
        values,
        (target if donor is None or not donor.size else donor).reshape(-1),
        twins[chance.randrange(len(twins))].reshape(-1),
        _part(values.size, chance),
        chance,
    )
    _MOVES[chance.randrange(len(_MOVES))](chosen)
    target[...] = values.reshape(target.shape)
    return tuple(changed)


def _has_elements(argument: Any) -> bool:
    array = array_of(argument)
    return array is not None and array.size > 0


def _kind(array: Array) -> tuple[Any, ...]:
    return array.shape, array.dtype


def _shapes(arguments: Arguments) -> list[Any]:
    arrays = (array_of(argument) for argument in arguments)
    return [None if array is None else array.shape for array in arrays]


@dataclass(frozen=True)
class _Elements:
    """The elements that a move changes, and those that it may take others from.

    Attributes:
        own: changed in place.
        other: of the other example's argument, of any size.
        twin: of an argument of the same shape and type.
        part: of the elements.
        chance: decides.
    """

    own: Array
    other: Array
    twin: Array
    part: slice
    chance: random.Random


def _part(size: int, chance: random.Random) -> slice:
    """Draw a part: everything, one element, the first ones, the last ones, or a range."""
    start, end = sorted((chance.randrange(size + 1), chance.randrange(size + 1)))
    kind = chance.randrange(6)
    if kind == 0:
        return slice(0, size)
    if kind == 1:
        return slice(0, end)
    if kind == 2:
        return slice(start, size)
    if kind == 3:
        return slice(start, end)
    at = chance.randrange(size)
    return slice(at, at + 1)


def _from_other(e: _Elements) -> None:
    """Take a part of the other example, where it is long enough."""
    if e.part.stop <= e.other.size:
        e.own[e.part] = e.other[e.part]


def _fill(e: _Elements) -> None:
    """Fill with one value from the other example, or from this one."""
    donor = e.other if e.chance.random() < 0.5 else e.own
    e.own[e.part] = donor[e.chance.randrange(donor.size)]


def _from_twin(e: _Elements) -> None:
    e.own[e.part] = e.twin[e.part]


def _reverse(e: _Elements) -> None:
    e.own[e.part] = e.own[e.part][::-1].copy()


def _sort(e: _Elements) -> None:
    e.own[e.part] = np.sort(e.own[e.part])


def _roll(e: _Elements) -> None:
    e.own[e.part] = np.roll(e.own[e.part], 1)


def _swap(e: _Elements) -> None:
    i, j = e.chance.randrange(e.own.size), e.chance.randrange(e.own.size)
    e.own[i], e.own[j] = e.own[j], e.own[i]


def _nudge(e: _Elements) -> None:
    """Change one element somewhat, within the range of both examples."""
    at = e.chance.randrange(e.own.size)
    old, other = e.own[at].item(), e.other[e.chance.randrange(e.other.size)].item()
    if e.own.dtype.kind in "iu":
        flipped = old ^ 1 << e.chance.randrange(8 * e.own.itemsize - 1)
        new: Any = e.chance.choice((old + 1, old - 1, old >> 1, (old + other) // 2, flipped))
    elif e.own.dtype.kind == "f":
        new = e.chance.choice((old / 2, old / 2 + other / 2, -old, float(round(old))))
    else:
        return
    low = min(e.own.min(), e.other.min()).item()
    high = max(e.own.max(), e.other.max()).item()
    if low <= new <= high:
        e.own[at] = new


_MOVES = (
    *(_from_other, _fill, _fill, _from_twin, _nudge, _nudge, _nudge),
    *(_reverse, _sort, _roll, _swap, _swap),
)
