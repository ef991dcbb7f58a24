"""`Finding` and `Verdict`: what `bisect` found, as text and as JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covp.base.document import Count, Seconds, unit
from covp.testing.bisect.origin import Cause
from covp.testing.bisect.written_test import WrittenTest

_STEPS = 6
"""Assignments that are printed."""


class Finding(msgspec.Struct, frozen=True):
    """The first layer that is wrong.

    Attributes:
        kind: `wrong output`, `overwritten tensor`, `fault`, or `inference`: each layer alone is
            right, and what the program computes with them is not
        where: platform, device and compiler of the wrong build, such as "riscv32 zig"
        input: number of the inference, from 1
        input_name: what its input is
        layer: empty where it is none
        target: `cpu` or an accelerator
        function: of the layer, in C
        index: of the operator in the model file; -1: none
        tensor: the one that is wrong; empty for a fault
        element: indices of the first wrong element
        got: that element; NaN and infinities as strings
        wanted: what it has to be
        wrong: that differ
        elements: of the tensor
        cause: where it comes from
        test: that shows it; None where none was written
    """

    kind: str
    where: str
    input: Count
    input_name: str
    layer: str = ""
    op: str = ""
    target: str = ""
    function: str = ""
    index: int = -1
    tensor: str = ""
    element: tuple[int, ...] = ()
    got: float | str | None = None
    wanted: float | str | None = None
    wrong: Annotated[Count, unit("elements")] = 0
    elements: Annotated[Count, unit("elements")] = 0
    cause: Cause | None = None
    test: WrittenTest | None = None

    @property
    def lines(self) -> list[str]:
        """The finding as text: the layer, the element, where it comes from."""
        head = f"layer {self.layer} ({self.op} on {self.target})" if self.layer else "the inference"
        given = f"input {self.input} ({self.input_name})"
        found = [f"FIRST WRONG: {head}, {self.where}, {given}"]
        if self.kind == "fault":
            return found + self._cause_lines("it ends with")
        what = {"wrong output": "output", "overwritten tensor": "overwrites tensor"}
        found.append(
            f"  {what.get(self.kind, 'output')} {self.tensor} {list(self.element)} is "
            f"{_shown(self.got)}, not {_shown(self.wanted)}; "
            f"{self.wrong:,} of {self.elements:,} elements differ"
        )
        return found + self._cause_lines("stored by")

    def _cause_lines(self, verb: str) -> list[str]:
        cause = self.cause
        if cause is None:
            return []
        lines = []
        if cause.kind == "accelerator":
            lines.append(f"  stored by the model of {cause.accelerator}: {cause.spot}")
            if cause.driver:
                lines.append(f"  its driver meanwhile: {cause.driver}")
        elif cause.kind == "not written":
            last = f"; the last store to the tensor: {cause.spot}" if cause.spot else ""
            lines.append(f"  never stored to{last}")
        elif cause.spot is not None:
            lines.append(f"  {verb}: {cause.spot}")
        if cause.made is not None:
            lines.append(f"  computed by: {cause.made}")
        if cause.other is not None:
            lines.append(f"  the other build there: {cause.other}")
        lines += [f"    before it: {step}" for step in cause.steps[-_STEPS:]]
        lines += [f"    called by {frame}" for frame in cause.call_stack[1:]]
        return lines + ([f"  {cause.note}"] if cause.note else [])


class Verdict(msgspec.Struct, frozen=True, tag_field="schema", tag="covp.bisect/1"):
    """The result of `covp.testing.bisect.bisect`, and the output of ``covp bisect --json``.

    Attributes:
        device: as given to `--device`
        toolchain: as given to `--toolchain`
        against: what was compared with, such as `toolchain gcc`
        layers: that are right in at least one inference
        inputs: inferences that were compared
        seconds: of the whole search
        finding: the first layer that is wrong; None: nothing differs
    """

    model: str
    platform: str
    device: str
    toolchain: str
    accelerators: tuple[str, ...]
    against: str
    layers: Annotated[Count, unit("layers")]
    inputs: Count
    seconds: Seconds
    finding: Finding | None = msgspec.field(name="found")


def _shown(value: float | str | None) -> str:
    return "?" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
