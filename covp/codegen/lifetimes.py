"""`arena_tensors`: what lies in a program's arena, where, and from which layer to which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from covp.codegen.program import LayerMemory, Program

Kind = Literal["input", "output", "tensor", "scratch", "state"]


@dataclass
class ArenaTensor:
    """A piece of the arena from its first use to its last.

    Attributes:
        name: of the tensor in the model; of scratch memory what the layer uses it for.
        kind: what it is; an input that is an output is an output.
        offset: bytes from the start of the arena.
        bytes: its size.
        first, last: positions in `Program.layers` of the first and last layer that use it. Inputs
            are there from the first layer on, outputs to the last one, states all the time.
    """

    name: str
    kind: Kind
    offset: int
    bytes: int
    first: int
    last: int

    @property
    def end(self) -> int:
        """The offset past its last byte."""
        return self.offset + self.bytes


def arena_tensors(program: Program) -> list[ArenaTensor]:
    """Return all tensors of the arena, ordered by their first layer."""
    end = max(len(program.layers) - 1, 0)
    found = [
        ArenaTensor(state.name, "state", state.tensor.offset, state.tensor.nbytes, 0, end)
        for state in program.states
    ]
    found += [ArenaTensor(t.name, "input", t.offset, t.nbytes, 0, 0) for t in program.inputs]
    for position, layer in enumerate(program.layers):
        names = {output.name for output in layer.outputs}
        for piece in layer.memory:
            there = _holders(found, piece.offset, piece.nbytes)
            used = [one for one in there if piece.is_read or one.kind == "state"]
            for one in used:
                one.last = max(one.last, position)
            if not used:
                found.append(_begun(piece, position, piece.name in names))
    for result in program.outputs:
        for one in _holders(found, result.offset, result.nbytes):
            one.kind, one.last = "output", end
    return sorted(found, key=lambda one: (one.first, one.offset))


def _begun(piece: LayerMemory, position: int, is_result: bool) -> ArenaTensor:
    kind: Kind = "tensor" if is_result or piece.is_read else "scratch"
    return ArenaTensor(piece.name, kind, piece.offset, piece.nbytes, position, position)


def _holders(found: Sequence[ArenaTensor], offset: int, size: int) -> list[ArenaTensor]:
    """Return the tensors whose content a stretch of the arena holds, the latest first.

    A tensor may lie in another's memory under its own name, and in parts that several layers wrote.
    """
    holders, left = [], [(offset, offset + size)]
    for one in reversed(found):
        rest = [part for start, stop in left for part in _uncovered_parts(start, stop, one)]
        if rest != left:
            holders.append(one)
        left = rest
    return holders


def _uncovered_parts(start: int, stop: int, one: ArenaTensor) -> Iterator[tuple[int, int]]:
    """Yield the parts of a stretch that a tensor does not cover."""
    if one.end <= start or stop <= one.offset:
        yield start, stop
        return
    if start < one.offset:
        yield start, one.offset
    if one.end < stop:
        yield one.end, stop


def live_bytes(tensors: Sequence[ArenaTensor], layers: int) -> list[int]:
    """Return the bytes of the arena in use while each layer runs; count shared bytes once.

    Args:
        tensors: what `arena_tensors` found.
        layers: how many the program has.
    """
    return [
        _total_length([(t.offset, t.offset + t.bytes) for t in tensors if t.first <= i <= t.last])
        for i in range(layers)
    ]


def _total_length(stretches: list[tuple[int, int]]) -> int:
    total, end = 0, 0
    for start, stop in sorted(stretches):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
