"""`LoopNest`: a layer of products as loops, read from the index map of its operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, Reads
from covp.graph.ops import definition

Ranges = Sequence[tuple[int, int]]
"""For each loop the first value and one past the last."""


@dataclass(frozen=True)
class Axis:
    """An axis of an operand: the index is the sum of ``steps`` times the loops, plus ``offset``.

    Attributes:
        extent: elements of the operand along the axis.
        steps: of each loop, none of them negative.
        offset: of the index; below 0 where padding lies before the first element.
    """

    extent: int
    steps: tuple[int, ...]
    offset: int = 0

    def box(self, ranges: Ranges) -> tuple[int, int]:
        """Return the first index and one past the last; beyond the operand where it is padded."""
        first = last = self.offset
        for step, (low, end) in zip(self.steps, ranges, strict=True):
            first += step * low
            last += step * (end - 1)
        return first, last + 1

    def span(self, extents: Sequence[int]) -> int:
        """Return how many indices a tile reads along the axis."""
        steps = zip(self.steps, extents, strict=True)
        return 1 + sum(step * (extent - 1) for step, extent in steps)

    def is_whole(self, extents: Sequence[int], tile: Sequence[int]) -> bool:
        """Return whether every tile is all of the operand along the axis, and no padding.

        Args:
            extents: of the loops.
            tile: of a tile, for each loop.
        """
        is_cut = any(s and t < e for s, e, t in zip(self.steps, extents, tile, strict=True))
        return not is_cut and self.box([(0, e) for e in extents]) == (0, self.extent)


@dataclass(frozen=True)
class Tile:
    """What the array computes with one command, as a matrix product.

    Attributes:
        pixels: rows of the result.
        channels: its columns.
        depth: products that each element of it is a sum of.
        groups: such products one after the other: the channels of a depthwise convolution.
    """

    pixels: int
    channels: int
    depth: int
    groups: int

    @property
    def products(self) -> int:
        """Products of two numbers in it, those with padding included."""
        return self.pixels * self.channels * self.depth * self.groups


@dataclass(frozen=True)
class LoopNest:
    """A sum of products: output[...] = sum of input[...] * weights[...] over all loops.

    Attributes:
        extents: of the loops; those of the output's axes come first.
        input, weights, output: the axes of the operands, without those of one element.
    """

    extents: tuple[int, ...]
    input: tuple[Axis, ...]
    weights: tuple[Axis, ...]
    output: tuple[Axis, ...]

    @property
    def operands(self) -> tuple[tuple[Axis, ...], ...]:
        """Axes of input, weights and output."""
        return self.input, self.weights, self.output

    def _depends(self, axes: Sequence[Axis]) -> frozenset[int]:
        return frozenset(n for axis in axes for n, step in enumerate(axis.steps) if step)

    @cached_property
    def uses(self) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """The loops that move along input, weights and output."""
        return (self._depends(self.input), self._depends(self.weights), self._depends(self.output))

    @cached_property
    def roles(self) -> dict[str, tuple[int, ...]]:
        """Loops by what they are to a matrix product.

        ``pixels`` do not move along the weights, ``channels`` not along the input, ``depth`` not
        along the output; ``groups`` move along all three.
        """
        inputs, weights, output = self.uses
        found: dict[str, list[int]] = {"groups": [], "pixels": [], "channels": [], "depth": []}
        for n in range(len(self.extents)):
            missing = [role for role, used in zip(("channels", "pixels", "depth"),
                       (inputs, weights, output), strict=True) if n not in used]  # fmt: skip
            found[missing[0] if missing else "groups"].append(n)
        return {role: tuple(loops) for role, loops in found.items()}


def loop_nest(op: Op) -> LoopNest | str:
    """Return the loops of an operator whose output is a sum of products of its first two inputs.

    A text instead says why there are none.
    """
    rule = definition(op.kind)
    if not rule.is_product or rule.reads is None:
        return f"{op.kind} is no sum of products of two operands"
    (own,) = rule.reads(op)
    loops = (*op.output.shape, *(loop.extent for loop in own.loops))
    kept = [n for n, extent in enumerate(loops) if extent > 1]
    extents = tuple(loops[n] for n in kept)
    operands = []
    for position in (0, 1):
        axes = _axes(op.input(position), own.inputs[position], kept)
        if isinstance(axes, str):
            return f"{op.kind}: {op.input(position).name} {axes}"
        operands.append(axes)
    output = tuple(
        Axis(loops[n], tuple(int(number == n) for number in kept))
        for n in kept
        if n < len(op.output.shape)
    )
    nest = LoopNest(extents, operands[0], operands[1], output)
    if any(sum(n in used for used in nest.uses) < 2 for n in range(len(extents))):
        return f"{op.kind}: a loop moves along one operand only"
    return nest


def _axes(tensor: Tensor, reads: Reads | None, kept: Sequence[int]) -> tuple[Axis, ...] | str:
    """Return the axes of more than one element of a tensor; or why they are not known."""
    if reads is None or len(reads) != len(tensor.shape):
        return "is read in a way that loops do not describe"
    found = []
    for extent, read in zip(tensor.shape, reads, strict=True):
        steps = [read.step(n) if isinstance(read, Index) else None for n in kept]
        if not isinstance(read, Index) or None in steps or min(s or 0 for s in [*steps, 0]) < 0:
            return "is read in uneven steps"
        offset = read.at(dict.fromkeys(read.loops(), 0))
        if extent > 1 or offset or any(steps):
            found.append(Axis(extent, tuple(step or 0 for step in steps), int(offset)))
    return tuple(found)
