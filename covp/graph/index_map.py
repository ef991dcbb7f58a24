"""Index maps: from which elements of its inputs an operator computes an element of an output.

An operator runs over an iteration space: the axes of an output and, inside of them, loops over what
becomes one element (as the operators of MLIR's linalg dialect). A map gives for each axis of an
input the index that is read, as a function of these loops. An index outside the input reads
nothing: that is how padding and CONCATENATION are said. A CONV_2D reads

    input  (b, y * stride + ky * dilation - top, x * stride + kx * dilation - left, ci)
    weights (co, ky, kx, ci)

with loops over ky, kx and ci beside the axes b, y, x, co. A map is a function of the operator, so
it is evaluated on the operator as it is: widened, cut or with its axes in another order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Op

Order = Literal["sum", "any order", "scan"]
"""How a loop makes one element: as a sum, whose order matters for floats; in any order to the bit,
as the largest; step by step, each from the one before."""
Range = tuple[int, int]
"""The first and the last value."""
Box = tuple[tuple[int, int], ...]
"""Range of each axis of a tensor: the first element and one past the last."""


@dataclass(frozen=True)
class Term:
    """times * ((coefficients * loops + offset) // per % mod); a mod of 0 is none.

    Attributes:
        loops: (number of a loop, coefficient), ascending; axes of the output come first.
        offset, per, mod, times: as in the formula.
    """

    loops: tuple[tuple[int, int], ...] = ()
    offset: int = 0
    per: int = 1
    mod: int = 0
    times: int = 1

    @property
    def plain(self) -> bool:
        """True if it is the sum alone."""
        return self.per == self.times == 1 and not self.mod

    def at(self, values: Mapping[int, Any]) -> Any:
        """Return the value for values of the loops by number, which may be arrays."""
        found: Any = sum((values[n] * c for n, c in self.loops), start=self.offset) // self.per
        return (found % self.mod if self.mod else found) * self.times

    def step(self, number: int) -> int | None:
        """Return how far the value moves with each step of a loop; None: in uneven steps."""
        whole, rest = divmod(dict(self.loops).get(number, 0), self.per)
        if rest or (self.mod and whole % self.mod):
            return None
        return 0 if self.mod else whole * self.times

    def bounds(self, ranges: Sequence[Range]) -> Range:
        """Return the least and the largest value for ranges of the loops."""
        low = high = self.offset
        for number, coefficient in self.loops:
            ends = [coefficient * end for end in ranges[number]]
            low, high = low + min(ends), high + max(ends)
        low, high = low // self.per, high // self.per
        if self.mod:
            whole = low // self.mod != high // self.mod
            low, high = (0, self.mod - 1) if whole else (low % self.mod, high % self.mod)
        low, high = sorted((low * self.times, high * self.times))
        return low, high


@dataclass(frozen=True)
class Index:
    """An index into an axis: the sum of terms, of which at most one is plain. Made by arithmetic
    of the indices that a `Space` gives: ``y * 2 + tap - 1``, ``c // 4``."""

    terms: tuple[Term, ...] = (Term(),)

    def __add__(self, other: Index | int) -> Index:
        added = (Term(offset=other),) if isinstance(other, int) else other.terms
        loops: dict[int, int] = {}
        offset, rest = 0, []
        for term in (*self.terms, *added):
            if not term.plain:
                rest.append(term)
                continue
            offset += term.offset
            for number, coefficient in term.loops:
                loops[number] = loops.get(number, 0) + coefficient
        kept = tuple(sorted((n, c) for n, c in loops.items() if c))
        plain = [Term(kept, offset)] if kept or offset or not rest else []
        return Index((*plain, *rest))

    def __sub__(self, other: Index | int) -> Index:
        return self + other * -1

    def __mul__(self, factor: int) -> Index:
        return Index(
            tuple(
                Term(tuple((n, c * factor) for n, c in t.loops if factor), t.offset * factor)
                if t.plain
                else Term(t.loops, t.offset, t.per, t.mod, t.times * factor)
                for t in self.terms
            )
        )

    def __floordiv__(self, divisor: int) -> Index:
        if divisor == 1:
            return self
        term = self._single()
        return Index((Term(term.loops, term.offset, term.per * divisor),))

    def __mod__(self, extent: int) -> Index:
        if extent == 1:
            return Index()
        term = self._single()
        return Index((Term(term.loops, term.offset, term.per, extent),))

    def _single(self) -> Term:
        (term,) = self.terms
        if term.mod or term.times != 1:
            raise ValueError(f"{term} is divided already; divide the sum before splitting it")
        return term

    def loops(self) -> frozenset[int]:
        """Return the numbers of the loops on which the index depends."""
        return frozenset(number for term in self.terms for number, _ in term.loops)

    def at(self, values: Mapping[int, Any]) -> Any:
        """Return the index for values of the loops by number, which may be arrays."""
        return sum(term.at(values) for term in self.terms)

    def step(self, number: int) -> int | None:
        """Return how far the index moves with each step of a loop; None: in uneven steps."""
        steps = [term.step(number) for term in self.terms]
        return None if None in steps else sum(step for step in steps if step is not None)

    def bounds(self, ranges: Sequence[Range]) -> Range:
        """Return the least and the largest index for ranges of the loops."""
        each = [term.bounds(ranges) for term in self.terms]
        return sum(low for low, _ in each), sum(high for _, high in each)


@dataclass(frozen=True)
class Listed:
    """An interval of an axis for each value of one loop: of resized and mirrored axes.

    Attributes:
        loop: its number.
        first, last: of the interval, by the loop's value.
    """

    loop: int
    first: tuple[int, ...]
    last: tuple[int, ...]

    def loops(self) -> frozenset[int]:
        """Return the number of the loop."""
        return frozenset({self.loop})

    def step(self, number: int) -> int | None:
        """Return None for the loop, which moves it in uneven steps, else 0."""
        return None if number == self.loop else 0

    def bounds(self, ranges: Sequence[Range]) -> Range:
        """Return the least and the largest index for ranges of the loops."""
        low, high = ranges[self.loop]
        return min(self.first[low : high + 1]), max(self.last[low : high + 1])


@dataclass(frozen=True)
class Chosen:
    """Some index that values decide, as those of GATHER: any may be read."""

    def loops(self) -> frozenset[int]:
        """Return the empty set: no loop moves it."""
        return frozenset()

    def step(self, number: int) -> int | None:
        """Return 0: no loop moves it."""
        return 0


Read = Index | Listed | Chosen
"""Selection of elements along an axis."""
Reads = tuple[Read, ...]
"""Read of each axis of an input. More of them than axes are conditions: they must be 0."""


@dataclass(frozen=True)
class Loop:
    """A loop beside the axes of the output."""

    extent: int
    order: Order = "sum"


@dataclass(frozen=True)
class IndexMap:
    """Map from an element of one output to the input elements that it is computed from.

    Attributes:
        loops: beside the output's axes, and numbered after them.
        inputs: for each input what is read; None: nothing.
    """

    loops: tuple[Loop, ...]
    inputs: tuple[Reads | None, ...]

    def ranges(self, box: Box) -> list[Range]:
        """Return the values of all loops for a box of the output, which is not empty."""
        axes = [(first, end - 1) for first, end in box]
        return axes + [(0, loop.extent - 1) for loop in self.loops]

    def read(self, position: int, shape: Sequence[int], box: Box) -> Box | None:
        """Return the box of an input that a box of the output is computed from; None: nothing.

        Args:
            position: of the input.
            shape: of the input.
            box: of the output.
        """
        reads, ranges = self.inputs[position], self.ranges(box)
        if reads is None:
            return None
        found = []
        for read, extent in zip(reads, _extents(shape, reads), strict=True):
            if any(ranges[n][0] > ranges[n][1] for n in read.loops()):
                return None
            low, high = (0, extent - 1) if isinstance(read, Chosen) else read.bounds(ranges)
            low, high = max(low, 0), min(high, extent - 1)
            if low > high:
                return None
            found.append((low, high + 1))
        return tuple(found[: len(shape)])

    def readers(
        self, position: int, place: Sequence[int], output: Sequence[int]
    ) -> NDArray[np.bool_]:
        """Return which elements of the output may be computed from one element of an input.

        Args:
            position: of the input.
            place: index of its element.
            output: the output's shape, which the result has, too.
        """
        reads, rank = self.inputs[position], len(output)
        if reads is None:
            return np.zeros(tuple(output), np.bool_)
        used = frozenset[int]().union(*(read.loops() for read in reads))
        extents = [*output, *(loop.extent for loop in self.loops)]
        numbers = [n for n in range(len(extents)) if n < rank or n in used]
        every = np.ones([extents[n] for n in numbers], np.bool_)
        places = np.ogrid[tuple(slice(extents[n]) for n in numbers)] if numbers else ()
        values = dict(zip(numbers, places, strict=True))
        wanted = [*place, *[0] * (len(reads) - len(place))]
        for read, index in zip(reads, wanted, strict=True):
            if isinstance(read, Index):
                every &= read.at(values) == index
            elif isinstance(read, Listed):
                at = values[read.loop]
                every &= (np.array(read.first)[at] <= index) & (index <= np.array(read.last)[at])
        return np.asarray(every.any(axis=tuple(range(rank, len(numbers)))))


def is_moved(
    read: Read, other: Read, loop: int, shift: tuple[int, int], extents: Sequence[int]
) -> bool:
    """Return whether a read, so much further in a loop, is another one plus a constant.

    Args:
        read, other: of two maps whose loops are the same.
        loop: that is moved.
        shift: how far it is moved, and the constant.
        extents: of all loops, within which both are compared.
    """
    further, constant = shift
    if isinstance(read, Index) and isinstance(other, Index):
        used = sorted(read.loops() | other.loops())
        values = dict(zip(used, np.ogrid[tuple(slice(extents[n]) for n in used)], strict=True))
        moved = {n: value + further * (n == loop) for n, value in values.items()}
        return bool(np.all(read.at(moved) == other.at(values) + constant))
    if isinstance(read, Listed) and isinstance(other, Listed):
        return constant == 0 and read == other and read.loop != loop
    return isinstance(read, Chosen) and isinstance(other, Chosen) and constant == 0


def _extents(shape: Sequence[int], reads: Reads) -> list[int]:
    return [*shape, *[1] * (len(reads) - len(shape))]


# -- to write maps with ---------------------------------------------------------------------------


class Space:
    """The iteration space of an output while its map is written.

    Args:
        op: the operator.
        output: position of the output.

    Attributes:
        axes: an index for each of the output's axes.
    """

    def __init__(self, op: Op, output: int = 0) -> None:
        self._op = op
        self._loops: list[Loop] = []
        self.axes = tuple(Index((Term(((n, 1),)),)) for n in range(len(op.outputs[output].shape)))

    def loop(self, extent: int, order: Order = "sum") -> Index:
        """Return a new loop."""
        self._loops.append(Loop(extent, order))
        return Index((Term(((len(self.axes) + len(self._loops) - 1, 1),)),))

    def loops(self, extents: Sequence[int], order: Order = "sum") -> tuple[Index, ...]:
        """Return several new loops: over all of a tensor of these extents."""
        return tuple(self.loop(extent, order) for extent in extents)

    def whole(self, *positions: int) -> Iterator[Reads | None]:
        """Yield all of the inputs at some positions, None for one that is left out."""
        for position in positions:
            tensor = self._op.inputs[position] if position < len(self._op.inputs) else None
            yield None if tensor is None else self.loops(tensor.shape)

    def broadcast(self, position: int, axes: Sequence[Index] | None = None) -> Reads | None:
        """Return an input broadcast, as numpy does it; None for one that is left out.

        Args:
            position: of the input.
            axes: of what it is broadcast to; the output's by default.
        """
        tensor = self._op.inputs[position] if position < len(self._op.inputs) else None
        if tensor is None:
            return None
        to = self.axes if axes is None else axes
        behind = len(to) - len(tensor.shape)
        return tuple(Index() if n == 1 else to[behind + i] for i, n in enumerate(tensor.shape))

    def make_map(self, *inputs: Reads | None) -> IndexMap:
        """Return the map; inputs that are not given are not read."""
        missing = (None,) * (len(self._op.inputs) - len(inputs))
        return IndexMap(tuple(self._loops), (*inputs[: len(self._op.inputs)], *missing))


def regroup(extents: Sequence[int], indices: Sequence[Index], shape: Sequence[int]) -> Reads:
    """Return the indices of an element in a tensor of another shape, as RESHAPE has it.

    Args:
        extents: of the shape that the indices belong to.
        indices: one for each.
        shape: the other one, of as many elements.
    """
    if 0 in shape:
        return (Index(),) * len(shape)
    found: list[Index] = []
    at = axis = 0
    while axis < len(shape):
        if shape[axis] == 1:
            found.append(Index())
            axis += 1
            continue
        ours, theirs, first, start = 1, 1, at, axis
        while ours != theirs or ours == 1:  # the finest groups of equal size
            if ours <= theirs:
                ours, at = ours * extents[at], at + 1
            else:
                theirs, axis = theirs * shape[axis], axis + 1
        found += _of_flat(_flat(extents[first:at], indices[first:at]), shape[start:axis])
    return tuple(found)


def _flat(extents: Sequence[int], indices: Sequence[Index]) -> Index:
    flat = Index()
    for axis, (extent, index) in enumerate(zip(extents, indices, strict=True)):
        if extent != 1:
            flat += index * math.prod(extents[axis + 1 :])
    return flat


def _of_flat(flat: Index, shape: Sequence[int]) -> list[Index]:
    """Return the indices of a flat index; the first needs no remainder."""
    found, inside = [], math.prod(shape)
    for extent in shape:
        whole, inside = inside, inside // extent
        found.append(flat // inside % extent if whole != math.prod(shape) else flat // inside)
    return found


# -- maps of whole groups of operators ------------------------------------------------------------


def everything(op: Op) -> list[IndexMap]:
    """Return the map of an output that needs all of each input: assumed for unknown operators."""
    spaces = [Space(op, number) for number in range(len(op.outputs))]
    return [space.make_map(*space.whole(*range(len(op.inputs)))) for space in spaces]


def elementwise(op: Op) -> list[IndexMap]:
    """Return the map of elements from the same place in each input, with numpy's broadcasting."""
    spaces = [Space(op, number) for number in range(len(op.outputs))]
    return [space.make_map(*map(space.broadcast, range(len(op.inputs)))) for space in spaces]


def rows_of(op: Op, axis: int = -1, order: Order = "sum") -> list[IndexMap]:
    """Return the map of elements from all of their row in the first input; others broadcast.

    Args:
        op: the operator.
        axis: the first axis that a row has; -1: rows lie along the last.
        order: of the loop along a row.
    """
    source = op.input(0).shape
    axis %= len(source)
    maps = []
    for number, output in enumerate(op.outputs):
        space = Space(op, number)
        row = space.loops(source[axis:], order)
        others = range(1, len(op.inputs)) if output.shape == source else ()
        maps.append(space.make_map((*space.axes[:axis], *row), *map(space.broadcast, others)))
    return maps


def reduce_axes(
    op: Op, axes: Collection[int], keep_dims: bool, order: Order = "sum"
) -> list[IndexMap]:
    """Return the map of elements from all along some axes of the first input.

    Args:
        op: the operator.
        axes: of the input, not negative.
        keep_dims: whether they stay in the output, with extent 1.
        order: of the loops.
    """
    space = Space(op)
    outside = list(space.axes)
    if not keep_dims:
        for axis in sorted(axes):
            outside.insert(axis, Index())
    extents = enumerate(op.input(0).shape)
    read = [space.loop(n, order) if axis in axes else outside[axis] for axis, n in extents]
    return [space.make_map(tuple(read))]


def window(
    op: Op,
    size: Sequence[int],
    stride: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    order: Order = "sum",
) -> list[IndexMap]:
    """Return the map of elements from a window of the first input per channel, as pools have it.

    Args:
        op: the operator, on images with their channels last: (batch, *space, channels).
        size: elements of the window along each axis of space.
        stride: from one window to the next; 1 by default.
        before: elements of padding before each axis; 0 by default.
        dilation: from one element of a window to the next; 1 by default.
        order: of the loops over the window.
    """
    maps = []
    for number in range(len(op.outputs)):
        space = Space(op, number)
        taps = slid(space.axes[1:-1], space.loops(size, order), stride, before, dilation)
        maps.append(space.make_map((space.axes[0], *taps, space.axes[-1])))
    return maps


def slid(
    axes: Sequence[Index],
    taps: Sequence[Index],
    stride: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> list[Index]:
    """Return the sliding window's reads per axis: axis * stride + tap * dilation - before."""
    ones, zeros = (1,) * len(axes), (0,) * len(axes)
    steps = zip(axes, taps, stride or ones, before or zeros, dilation or ones, strict=True)
    return [axis * s + tap * d - b for axis, tap, s, b, d in steps]
