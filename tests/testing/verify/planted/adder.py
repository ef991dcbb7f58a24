# mypy: ignore-errors
# ruff: noqa
"""An expert's accelerator: registers, unit and driver by hand. ADD of int8, as it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covp.accelerator import AcceleratorBackend, CCall, Limit
from covp.errors import ModelError
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed import typed
from covp.hardware.job import PROTOCOL
from covp.hardware.job_timing import JobTiming
from covp.hardware.job_unit import AcceptedJob, JobError, JobUnit
from covp.hardware.registers import Field, Register, RegisterMap

REGISTERS = RegisterMap(
    *PROTOCOL,
    Register("FIRST", 0x10, doc="Address."),
    Register("SECOND", 0x14, doc="Address."),
    Register("OUTPUT", 0x18, doc="Address."),
    Register("LENGTH", 0x1C, fields=[Field("ELEMENTS", 0, 20)], doc="Elements."),
    Register(
        "ZEROS",
        0x20,
        fields=[Field("A", 0, 8), Field("B", 8, 8), Field("Y", 16, 8)],
        doc="Zero points.",
    ),
    Register("CLAMP", 0x24, fields=[Field("LOW", 0, 8), Field("HIGH", 8, 8)], doc="Ends."),
    Register("A_MULTIPLIER", 0x28, doc="Of the first."),
    Register("A_SHIFT", 0x2C, fields=[Field("RIGHT", 0, 5)], doc="To the right."),
    Register("B_MULTIPLIER", 0x30, doc="Of the second."),
    Register("B_SHIFT", 0x34, fields=[Field("RIGHT", 0, 5)], doc="To the right."),
    Register("Y_MULTIPLIER", 0x38, doc="Of the sum."),
    Register("Y_SHIFT", 0x3C, fields=[Field("RIGHT", 0, 5)], doc="To the right."),
)


def signed(value: int) -> int:
    return value - 256 if value > 127 else value


def scaled(x: Any, multiplier: int, right: int) -> Any:
    """TFLM's two roundings."""
    high = x * multiplier + np.where(x >= 0, 1 << 30, 1 - (1 << 30))
    high = np.where(high >= 0, high >> 31, -((-high) >> 31))
    mask = (1 << right) - 1
    rest = high & mask
    return (high >> right) + (rest > (mask >> 1) + (high < 0))


class AdderUnit(JobUnit):
    """The unit."""

    registers = REGISTERS

    def accept(self) -> AcceptedJob:
        """Decode, check, add."""
        v = self.values
        n = self.get("LENGTH", "ELEMENTS")
        if n == 0:
            raise JobError("size")
        for name in ("FIRST", "SECOND", "OUTPUT"):
            if not self.bus.is_memory(v[name], n, writable=name == "OUTPUT"):
                raise JobError("address", name)
        for name in ("FIRST", "SECOND"):
            if v[name] < v["OUTPUT"] + n and v["OUTPUT"] < v[name] + n:
                raise JobError("overlap", name)
        a, b = (
            np.frombuffer(self.bus.read(v[k], n), np.int8).astype(np.int64)
            for k in ("FIRST", "SECOND")
        )
        a = scaled((a - signed(self.get("ZEROS", "A"))) << 20, v["A_MULTIPLIER"], v["A_SHIFT"])
        b = scaled((b - signed(self.get("ZEROS", "B"))) << 20, v["B_MULTIPLIER"], v["B_SHIFT"])
        y = scaled(a + b, v["Y_MULTIPLIER"], v["Y_SHIFT"]) + signed(self.get("ZEROS", "Y"))
        y = np.clip(y, signed(self.get("CLAMP", "LOW")), signed(self.get("CLAMP", "HIGH")))
        return AcceptedJob(JobTiming(n, n // 2, 20), v["OUTPUT"], y.astype(np.int8))


class Adder(AcceleratorBackend):
    """ADD of two int8 tensors of one shape."""

    name = "adder"
    patterns = (Pattern("add", op("ADD")),)
    peripheral = AdderUnit

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """What the registers hold."""
        if any(t is None or t.dtype != np.int8 for t in (*match.op.inputs, match.op.output)):
            return "only int8"
        if any(match.op.input(i).shape != match.op.output.shape for i in (0, 1)):
            return "only equal shapes"
        try:
            layer = typed(match.op)
        except ModelError as error:
            return str(error)
        shifts = [layer.first[1], layer.second[1], layer.result[1]]
        return [
            Limit("elements", layer.elements, at_most=(1 << 20) - 1),
            Limit("shift to the left", max(shifts), at_most=0),
            Limit("shift to the right", max(-s for s in shifts), at_most=31),
        ]

    def lower(self, match: Match) -> CCall:
        """One call with all numbers."""
        x = typed(match.op)
        low, high = x.clamp
        zeros = (
            (x.first_zero_point & 255)
            | (x.second_zero_point & 255) << 8
            | (x.output_zero_point & 255) << 16
        )
        clamp = (low & 255) | (high & 255) << 8
        shifts = -x.first[1] | -x.second[1] << 8 | -x.result[1] << 16
        return CCall(
            "adder_run",
            "adder.h",
            (
                match.op.input(0),
                match.op.input(1),
                match.op.output,
                x.elements,
                zeros,
                clamp,
                x.first[0],
                x.second[0],
                x.result[0],
                shifts,
            ),
        )

    def make_peripheral(self) -> AdderUnit:
        """The unit."""
        return AdderUnit()

    def driver(self, base: int) -> Mapping[str, str]:
        """By hand."""
        return {
            "adder_registers.h": REGISTERS.c_header("ADDER", base),
            "adder.h": HEADER,
            "adder.c": SOURCE,
        }


PROTOTYPE = """void adder_run(const int8_t *a, const int8_t *b, int8_t *y, uint32_t n, uint32_t zeros, uint32_t clamp,
               uint32_t ma, uint32_t mb, uint32_t my, uint32_t shifts)"""
HEADER = f"#ifndef ADDER_H\n#define ADDER_H\n#include <stdint.h>\n{PROTOTYPE};\n#endif\n"
SOURCE = (
    '#include "adder.h"\n#include <covp_job.h>\n#include "adder_registers.h"\n'
    + PROTOTYPE
    + """
{
    ADDER_FIRST = (uint32_t)(uintptr_t)a;
    ADDER_SECOND = (uint32_t)(uintptr_t)b;
    ADDER_OUTPUT = (uint32_t)(uintptr_t)y;
    ADDER_LENGTH = n;
    ADDER_ZEROS = zeros;
    ADDER_CLAMP = clamp;
    ADDER_A_MULTIPLIER = ma;
    ADDER_A_SHIFT = shifts & 31;
    ADDER_B_MULTIPLIER = mb;
    ADDER_B_SHIFT = shifts >> 8 & 31;
    ADDER_Y_MULTIPLIER = my;
    ADDER_Y_SHIFT = shifts >> 16 & 31;
    covp_job_start(&ADDER_CTRL, COVP_POLL);
    covp_job_wait(&ADDER_CTRL, COVP_POLL);
}
"""
)
