"""Loops over the elements of several tensors at once, each with its own strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from covp.codegen.c_text import indent
from covp.errors import ModelError

_INDICES = "ijklmnefgh"


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the elements between neighbours along each axis of a dense row-major tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def broadcast_strides(shape: Sequence[int], result: Sequence[int]) -> tuple[int, ...]:
    """Return the strides that broadcast a dense tensor: 0 along axes that repeat."""
    missing = len(result) - len(shape)
    own = [
        0 if extent == 1 else stride
        for extent, stride in zip(shape, dense_strides(shape), strict=True)
    ]
    return (0,) * missing + tuple(own)


@dataclass(frozen=True)
class LoopNest:
    """Nested loops; made by `LoopNest.over`, which joins axes that can be one loop.

    Attributes:
        extents: iterations of each loop, outermost first; at least one loop.
        strides: for each operand, the elements between two steps of each loop.
        indices: one C name a loop.
    """

    extents: tuple[int, ...]
    strides: Mapping[str, tuple[int, ...]]
    indices: str = _INDICES

    @staticmethod
    def over(extents: Sequence[int], **strides: Sequence[int]) -> LoopNest:
        """Build the nest with as few loops as the strides of all operands allow."""
        kept: list[int] = []
        steps: dict[str, list[int]] = {name: [] for name in strides}
        for axis, extent in enumerate(extents):
            if extent == 1:
                continue
            if kept and all(steps[n][-1] == strides[n][axis] * extent for n in strides):
                kept[-1] *= extent
                for name in strides:
                    steps[name][-1] = strides[name][axis]
                continue
            kept.append(extent)
            for name in strides:
                steps[name].append(strides[name][axis])
        if len(kept) > len(_INDICES):
            raise ModelError(f"axes {list(extents)} need {len(kept)} loops; reshape them to fewer")
        if not kept:
            return LoopNest((1,), dict.fromkeys(strides, (1,)))
        return LoopNest(tuple(kept), {name: tuple(step) for name, step in steps.items()})

    def inside(self) -> LoopNest:
        """Return the same loops with other index names, for use inside another nest."""
        return replace(self, indices="pqrstu")

    def at(self, name: str, ahead: int = 0, start: int = 0) -> str:
        """Return the C index of an operand.

        Args:
            name: of the operand.
            ahead: iterations of the innermost loop past the current one.
            start: elements that are added.
        """
        terms = []
        for index, stride in zip(self.indices, self.strides[name], strict=False):
            if stride:
                terms.append(index if stride == 1 else f"{index} * {stride}")
        constant = start + ahead * self.strides[name][-1]
        if constant or not terms:
            terms.append(str(constant))
        return " + ".join(terms).replace("+ -", "- ")

    def unroll(self, most: int = 4) -> int:
        """Return the largest unroll, up to ``most``, that divides the innermost loop."""
        return next(n for n in range(most, 0, -1) if self.divides_into(n))

    def divides_into(self, unroll: int) -> bool:
        """Return whether the innermost loop's length is a multiple of ``unroll``."""
        return self.extents[-1] % unroll == 0

    def loops(self, body: Callable[[int], Sequence[str]], unroll: int = 1) -> list[str]:
        """Return C text of the loops; ``body(ahead)`` gives the statements of one iteration."""
        lines = [line for ahead in range(unroll) for line in body(ahead)]
        step = unroll
        for depth in reversed(range(len(self.extents))):
            index = self.indices[depth]
            advance = f"{index}++" if step == 1 else f"{index} += {step}"
            head = f"for (int32_t {index} = 0; {index} < {self.extents[depth]}; {advance})"
            lines = [head, indent(lines)] if len(lines) == 1 else [f"{head} {{", indent(lines), "}"]
            step = 1
        return lines
