"""The unit's instructions: a Python model, and the same in C for the emulation.

All are custom-0 instructions (opcode 0x0b); funct3 says what, funct7 the accumulator i of 16.

| funct3 | instruction | does |
|---|---|---|
| 0 | set i | accumulator i = rs1 |
| 1 | dot i | accumulator i += the four int8 of rs1 times those of rs2, summed |
| 2 | lanes i | accumulator i + j += int8 j of rs1 times that of rs2, j = 0 to 3; i mod 4 = 0 |
| 3 | requantize i | rd = accumulator i, scaled as TFLM does |

requantize: rs1 is the multiplier; rs2 holds, from the lowest byte, the shift (positive to the
left), the zero point and both ends of the clamp. The others give 0 in rd. Accumulators wrap as
32-bit adders do.
"""

from __future__ import annotations

from collections.abc import Callable

from covp.hardware.custom_instruction import CustomInstruction

ACCUMULATORS = 16
SET, DOT, LANES, REQUANTIZE = range(4)

_PLAIN = "int8_t x[4], w[4]; memcpy(x, &a, 4); memcpy(w, &b, 4); uint32_t *acc = state->word + {i};"
_VECTOR = """__m128i x = _mm_cvtsi32_si128((int)a), w = _mm_cvtsi32_si128((int)b);
x = _mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8);
w = _mm_srai_epi16(_mm_unpacklo_epi8(w, w), 8);
__m128i *acc = (__m128i *)(state->word + {i});"""
# nearly all that is executed is one of these two
_NATIVE = {
    SET: "state->word[{i}] = a; return 0;",
    DOT: f"""
#ifdef __SSE2__
{_VECTOR}
__m128i pairs = _mm_madd_epi16(x, w);
*(uint32_t *)acc += (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_srli_si128(pairs, 4)));
#else
{_PLAIN}
*acc += (uint32_t)(x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3]);
#endif
return 0;""",
    LANES: f"""
#ifdef __SSE2__
{_VECTOR}
__m128i products = _mm_unpacklo_epi16(_mm_mullo_epi16(x, w), _mm_mulhi_epi16(x, w));
_mm_storeu_si128(acc, _mm_add_epi32(_mm_loadu_si128(acc), products));
#else
{_PLAIN}
for (int j = 0; j < 4; j++) acc[j] += (uint32_t)(x[j] * w[j]);
#endif
return 0;""",
    # MultiplyByQuantizedMultiplier of tensorflow/lite/kernels/internal/common.h, double rounding
    REQUANTIZE: """
int8_t scale[4]; memcpy(scale, &b, 4); // shift, zero point, lowest, highest
int left = scale[0] > 0 ? scale[0] : 0, right = scale[0] > 0 ? 0 : -scale[0];
int32_t value = (int32_t)(state->word[{i}] << (left & 31));
int64_t high = ((int64_t)value * (int32_t)a + (1ll << 30)) >> 31;
if (high > INT32_MAX) high = INT32_MAX;
int64_t mask = (1ll << right) - 1, rest = high & mask;
int64_t result = (high >> right) + (rest > (mask >> 1) + (high < 0)) + scale[1];
if (result > scale[3]) result = scale[3];
if (result < scale[2]) result = scale[2];
return (uint32_t)(int32_t)result;""",
}
_NAMES = {SET: "set", DOT: "dot", LANES: "lanes", REQUANTIZE: "requantize"}


class CfuModel:
    """The unit in plain Python, for tests: what an RTL author would write down first."""

    def __init__(self) -> None:
        self.accumulators = [0] * ACCUMULATORS

    def execute(self, what: int, i: int, rs1: int, rs2: int) -> int:
        """One instruction; registers and result are unsigned 32 bits."""
        x, w = (_signed_bytes(value) for value in (rs1, rs2))
        if what == SET:
            self.accumulators[i] = rs1
        elif what == DOT:
            self._add(i, sum(a * b for a, b in zip(x, w, strict=True)))
        elif what == LANES:
            for j, (a, b) in enumerate(zip(x, w, strict=True)):
                self._add(i + j, a * b)
        else:
            return self._requantize(self.accumulators[i], rs1, w) & 0xFFFFFFFF
        return 0

    def _add(self, i: int, value: int) -> None:
        self.accumulators[i] = (self.accumulators[i] + value) & 0xFFFFFFFF

    def _requantize(self, accumulator: int, multiplier: int, packed_scale: list[int]) -> int:
        shift, zero_point, low, high = packed_scale
        value = _signed(accumulator << max(shift, 0) & 0xFFFFFFFF)
        doubled = min((value * _signed(multiplier) + (1 << 30)) >> 31, (1 << 31) - 1)
        right = max(-shift, 0)
        magnitude = (abs(doubled) + (1 << right >> 1)) >> right  # ties away from zero
        scaled = magnitude if doubled >= 0 else -magnitude
        return max(low, min(high, scaled + zero_point))


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _signed_bytes(word: int) -> list[int]:
    return [int.from_bytes([word >> 8 * j & 0xFF], "little", signed=True) for j in range(4)]


def make_instructions(mac_cycles: int, requantize_cycles: int) -> tuple[CustomInstruction, ...]:
    """Return the instructions, with the cycles that the core takes for each."""
    model = CfuModel()

    def behaviour(what: int, i: int) -> Callable[[int, int], int]:
        return lambda rs1, rs2: model.execute(what, i, rs1, rs2)

    return tuple(
        CustomInstruction(
            f"{_NAMES[what]}_{i}",
            what,
            i,
            behaviour(what, i),
            _NATIVE[what].replace("{i}", str(i)),
            {SET: 1, REQUANTIZE: requantize_cycles}.get(what, mac_cycles),
            macs=4 if what in (DOT, LANES) else 0,
        )
        for what in (SET, DOT, LANES, REQUANTIZE)
        for i in range(0, ACCUMULATORS, 4 if what == LANES else 1)
    )
