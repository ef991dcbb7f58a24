# mypy: ignore-errors
# ruff: noqa
"""A unit inside the core: a dot product, for a driver of fully connected layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from covp.accelerator import AcceleratorBackend, CCall, Constant, Limit, RegisterImage
from covp.errors import ModelError
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed_convolution import resolve
from covp.hardware.custom_instruction import CustomInstruction, InstructionUnit


class Model:
    """The accumulator."""

    def __init__(self) -> None:
        self.sum = 0

    def start(self, a: int, b: int) -> int:
        self.sum = a
        return 0

    def mac(self, a: int, b: int) -> int:
        for i in range(4):
            x, w = ((v >> 8 * i & 255 ^ 128) - 128 for v in (a, b))
            self.sum = (self.sum + x * w) & 0xFFFFFFFF
        return self.sum


MAC = "int8_t x[4], w[4]; memcpy(x, &a, 4); memcpy(w, &b, 4); for (int i = 0; i < 4; i++) state->word[0] += (uint32_t)(x[i] * w[i]); return state->word[0];"


class Dot(AcceleratorBackend):
    """FULLY_CONNECTED with depths in fours."""

    name = "dot"
    patterns = (Pattern("dot", op("FULLY_CONNECTED")),)
    peripheral = InstructionUnit
    architectures = ("riscv",)

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """int8."""
        try:
            layer = resolve(match.op)
        except ModelError as error:
            return str(error)
        return [
            Limit("type", match.op.input(0).dtype.name, one_of=("int8",)),
            Limit("depth modulo 4", layer.in_channels % 4, at_most=0),
        ]

    def lower(self, match: Match) -> CCall:
        """One call."""
        x = resolve(match.op)
        weights = x.weights.reshape(x.out_channels, -1)
        bias = x.bias.astype(np.int64) - x.input_zero_point * weights.astype(np.int64).sum(axis=1)
        image = RegisterImage(
            "image",
            (
                ("weights", Constant("weights", np.ascontiguousarray(weights))),
                ("bias", Constant("bias", bias.astype(np.uint32).view(np.int32))),
                ("multiplier", Constant("multiplier", x.multiplier.astype(np.int32))),
                ("shift", Constant("shift", x.shift.astype(np.int32))),
                ("depth", x.in_channels),
                ("outputs", x.out_channels),
                ("zero_point", x.output_zero_point & 0xFFFFFFFF),
                ("low", x.clamp[0] & 0xFFFFFFFF),
                ("high", x.clamp[1] & 0xFFFFFFFF),
            ),
        )
        return CCall("dot_run", "dot.h", (image, match.op.input(0), match.op.output, x.batch))

    def driver(self, base: int) -> Mapping[str, str]:
        """In C."""
        return {"dot.h": HEADER, "dot.c": SOURCE}

    def make_peripheral(self) -> InstructionUnit:
        """Two instructions."""
        model = Model()
        return InstructionUnit(
            (
                CustomInstruction("start", 0, 0, model.start, "state->word[0] = a; return 0;"),
                CustomInstruction("mac", 1, 0, model.mac, MAC),
            )
        )


HEADER = """#ifndef DOT_H
#define DOT_H
#include <stdint.h>
struct dot { const int8_t *weights; const int32_t *bias, *multiplier, *shift; int32_t depth, outputs, zero, low, high; };
void dot_run(const struct dot *d, const int8_t *x, int8_t *y, int32_t batch);
#endif
"""
SOURCE = """#include "dot.h"
static void start(uint32_t a) { __asm__ volatile(".insn r 0x0b, 0, 0, x0, %0, x0" ::"r"(a)); }
static uint32_t mac(uint32_t a, uint32_t b)
{
    uint32_t r;
    __asm__ volatile(".insn r 0x0b, 1, 0, %0, %1, %2" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
static int32_t scaled(int32_t v, int32_t m, int32_t s)
{
    int32_t left = s > 0 ? s : 0, right = s > 0 ? 0 : -s;
    int64_t p = (int64_t)(int32_t)((uint32_t)v << left) * m;
    int64_t high = (p + (p >= 0 ? 1ll << 30 : 1 - (1ll << 30))) / (1ll << 31);
    int64_t mask = (1ll << right) - 1, rest = high & mask;
    return (int32_t)((high >> right) + (rest > (mask >> 1) + (high < 0)));
}
void dot_run(const struct dot *d, const int8_t *x, int8_t *y, int32_t batch)
{
    for (; batch > 0; batch--, x += d->depth)
        for (int32_t c = 0; c < d->outputs; c++) {
            const int8_t *w = d->weights + c * d->depth;
            uint32_t sum = 0;
            start((uint32_t)d->bias[c]);
            for (int32_t i = 0; i < d->depth; i += 4) {
                uint32_t p, q;
                __builtin_memcpy(&p, x + i, 4);
                __builtin_memcpy(&q, w + i, 4);
                sum = mac(p, q);
            }
            int32_t v = scaled((int32_t)sum, d->multiplier[c], d->shift[c]) + d->zero;
            v = v < d->low ? d->low : v;
            v = v > d->high ? d->high : v;
            *y++ = (int8_t)v;
        }
}
"""
