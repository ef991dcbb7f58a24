# mypy: ignore-errors
# ruff: noqa
"""A unit of commands: loads into a scratchpad, products out of it, stores. No jobs, no protocol.

The driver cuts fully connected layers into tiles of 16 outputs and 32 inputs; sums stay inside
until they are stored, and the core requantizes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covp.accelerator import AcceleratorBackend, CCall, Constant, Limit, Requantize, Workspace
from covp.errors import AcceleratorError, ModelError
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed_convolution import resolve
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

REGISTERS = RegisterMap(
    Register("COMMAND", 0x00, access="wo", on_write="command", doc="1 to 5."),
    Register("STATUS", 0x04, access="ro", on_read="poll", fields=[Field("BUSY", 0)], doc="Busy."),
    Register("ADDRESS", 0x08, doc="In memory."),
    Register("PLACE", 0x0C, fields=[Field("BYTES", 0, 12)], doc="In the scratchpad."),
    Register("ROWS", 0x10, fields=[Field("COUNT", 0, 8)], doc="Of a load or a product."),
    Register("COLUMNS", 0x14, fields=[Field("COUNT", 0, 8)], doc="Likewise."),
    Register("PITCH", 0x18, doc="Bytes from one row of a load to the next."),
)
LOAD, MULTIPLY, STORE, BIAS = 1, 2, 3, 4


class ScratchpadUnit(Peripheral):
    """2 KB: inputs from 0 on, weights from 1024 on; 16 sums."""

    registers = REGISTERS

    def __init__(self) -> None:
        self.pad = np.zeros(2048, np.int8)
        self.sums = np.zeros(16, np.int64)
        self.done_at = 0
        super().__init__()

    def reset(self) -> None:
        """All zero."""
        super().reset()
        self.pad[:] = 0
        self.sums[:] = 0

    def poll(self) -> None:
        """STATUS: reading it waits."""
        if self.get("STATUS", "BUSY"):
            self.clock.wait_until(self.done_at)
            self.clock.run_due()

    def command(self, number: int) -> None:
        """Begin one."""
        self.clock.run_due()
        if self.get("STATUS", "BUSY"):
            raise AcceleratorError("a command while one is at work")
        rows, columns = self.get("ROWS", "COUNT"), self.get("COLUMNS", "COUNT")
        act = {LOAD: self.load, MULTIPLY: self.multiply, STORE: self.store, BIAS: self.bias}
        finish = act[number](rows, columns)
        self.set("STATUS", "BUSY", 1)

        def end() -> None:
            finish()
            self.set("STATUS", "BUSY", 0)

        self.done_at = self.clock.now + 4 + rows * columns // 8
        self.clock.at(self.done_at, end)

    def load(self, rows: int, columns: int) -> Any:
        """Rows of bytes."""
        address, pitch, place = self.values["ADDRESS"], self.values["PITCH"], self.values["PLACE"]
        data = [self.bus.read(address + r * pitch, columns) for r in range(rows)]

        def finish() -> None:
            for r, row in enumerate(data):
                start = place + r * columns
                self.pad[start : start + columns] = np.frombuffer(row, np.int8)

        return finish

    def bias(self, rows: int, columns: int) -> Any:
        """Sums begin with 32-bit words."""
        words = np.frombuffer(self.bus.read(self.values["ADDRESS"], 4 * rows), np.int32)

        def finish() -> None:
            self.sums[:rows] = words

        return finish

    def multiply(self, rows: int, columns: int) -> Any:
        """Add products of the inputs with ``rows`` rows of weights."""

        def finish() -> None:
            x = self.pad[:columns].astype(np.int64)
            w = self.pad[1024 : 1024 + rows * columns].reshape(rows, columns).astype(np.int64)
            self.sums[:rows] += w @ x

        return finish

    def store(self, rows: int, columns: int) -> Any:
        """Sums to memory."""
        address = self.values["ADDRESS"]

        def finish() -> None:
            self.bus.write(address, self.sums[:rows].astype(np.int32))

        return finish


class Scratchpad(AcceleratorBackend):
    """FULLY_CONNECTED of int8."""

    name = "scratchpad"
    patterns = (Pattern("scratchpad", op("FULLY_CONNECTED")),)
    peripheral = ScratchpadUnit

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """int8."""
        try:
            layer = resolve(match.op)
        except ModelError as error:
            return str(error)
        return [Limit("type", match.op.input(0).dtype.name, one_of=("int8",))]

    def lower(self, match: Match) -> Any:
        """Sums on the unit, the rest on the core."""
        x = resolve(match.op)
        weights = np.ascontiguousarray(x.weights.reshape(x.out_channels, -1))
        bias = x.bias.astype(np.int64) - x.input_zero_point * weights.astype(np.int64).sum(axis=1)
        sums = Workspace(4 * x.batch * x.out_channels)
        bias = Constant("bias", bias.astype(np.int32))
        sizes = (x.batch, x.in_channels, x.out_channels)
        return [
            CCall(
                "scratchpad_run",
                "scratchpad.h",
                (match.op.input(0), Constant("weights", weights), bias, sums, *sizes),
            ),
            Requantize(
                sums,
                match.op.output,
                x.multiplier,
                x.shift,
                x.output_zero_point,
                x.clamp,
                2**31 - 1,
            ),
        ]

    def driver(self, base: int) -> Mapping[str, str]:
        """By hand."""
        return {
            "scratchpad_registers.h": REGISTERS.c_header("PAD", base),
            "scratchpad.h": HEADER,
            "scratchpad.c": SOURCE,
        }


PROTOTYPE = """void scratchpad_run(const int8_t *x, const int8_t *weights, const int32_t *bias, int32_t *sums,
                    uint32_t batch, uint32_t depth, uint32_t outputs)"""
HEADER = f"#ifndef PAD_H\n#define PAD_H\n#include <stdint.h>\n{PROTOTYPE};\n#endif\n"
SOURCE = (
    '#include "scratchpad.h"\n#include "scratchpad_registers.h"\n'
    + """
enum { LOAD = 1, MULTIPLY, STORE, BIAS };

static void command(uint32_t number)
{
    __asm__ volatile("" ::: "memory");
    PAD_COMMAND = number;
    while (PAD_STATUS & 1u) { }
    __asm__ volatile("" ::: "memory");
}

static void load(const int8_t *from, uint32_t place, uint32_t rows, uint32_t columns, uint32_t pitch)
{
    PAD_ADDRESS = (uint32_t)(uintptr_t)from;
    PAD_PLACE = place;
    PAD_ROWS = rows;
    PAD_COLUMNS = columns;
    PAD_PITCH = pitch;
    command(LOAD);
}

"""
    + PROTOTYPE
    + """
{
    for (; batch > 0; batch--, x += depth, sums += outputs)
        for (uint32_t c = 0; c < outputs; c += 16) {
            uint32_t rows = outputs - c < 16 ? outputs - c : 16;
            PAD_ADDRESS = (uint32_t)(uintptr_t)(bias + c);
            PAD_ROWS = rows;
            command(BIAS);
            for (uint32_t i = 0; i < depth; i += 32) {
                uint32_t columns = depth - i < 32 ? depth - i : 32;
                load(x + i, 0, 1, columns, 0);
                load(weights + c * depth + i, 1024, rows, columns, depth);
                command(MULTIPLY);
            }
            PAD_ADDRESS = (uint32_t)(uintptr_t)(sums + c);
            PAD_ROWS = rows;
            command(STORE);
        }
}
"""
)
