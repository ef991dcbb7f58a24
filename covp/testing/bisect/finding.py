"""`Finding` and `Verdict`: what `bisect` found, as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from covp.testing.bisect.origin import Cause
from covp.testing.bisect.walk import Kind
from covp.testing.bisect.written_test import WrittenTest

_STEPS = 6
"""Assignments that are printed."""


@dataclass(frozen=True)
class Finding:
    """The first layer that is wrong.

    Attributes:
        kind: "wrong output", "overwritten tensor", "fault", or "inference": each layer alone is
            right, and what the program computes with them is not.
        where: platform, device and compiler of the wrong build, such as "riscv32 zig".
        input, input_name: number of the input, from 1, and what it is.
        layer, op, target, function, index: of the layer, see `covp.codegen.program.ProgramLayer`;
            empty where it is none.
        tensor: the one that is wrong; empty for a fault.
        element: index of its first wrong element.
        got, wanted: that element.
        wrong, elements: how many differ, of how many.
        cause: where it comes from.
        test: that shows it; None where none was written.
    """

    kind: Kind | str
    where: str
    input: int
    input_name: str
    layer: str = ""
    op: str = ""
    target: str = ""
    function: str = ""
    index: int = -1
    tensor: str = ""
    element: tuple[int, ...] = ()
    got: float | None = None
    wanted: float | None = None
    wrong: int = 0
    elements: int = 0
    cause: Cause | None = None
    test: WrittenTest | None = None

    def record(self) -> dict[str, Any]:
        """Return the key ``found`` of ``covp.bisect/1``; NaN and infinities are strings."""
        record = asdict(self)
        for name in ("got", "wanted"):
            value = record[name]
            if value is not None:
                record[name] = value + 0 if math.isfinite(value) else str(value)
        test = self.test
        record["test"] = test and {
            "file": str(test.path),
            "used": test.used,
            "elements": test.elements,
        }
        return record

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


@dataclass(frozen=True)
class Verdict:
    """The result of `covp.testing.bisect.bisect`.

    Attributes:
        model, platform, device, toolchain, accelerators: of the program.
        against: what it was compared with.
        layers: how many were compared.
        inputs: for how many inputs.
        finding: None where nothing differs.
        seconds: host time.
    """

    model: str
    platform: str
    device: str
    toolchain: str
    accelerators: tuple[str, ...]
    against: str
    layers: int
    inputs: int
    finding: Finding | None
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return the JSON document ``covp.bisect/1``."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "finding"}
        found = None if self.finding is None else self.finding.record()
        own["accelerators"] = list(self.accelerators)
        return {"schema": "covp.bisect/1", **own, "found": found}


def _shown(value: float | None) -> str:
    return "?" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
