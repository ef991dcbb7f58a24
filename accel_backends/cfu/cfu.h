/* The custom-0 instructions of the unit; accumulator numbers are constants 0..15. */
#ifndef CFU_H
#define CFU_H

#include <stdint.h>

/* Accumulators are no operands that the compiler knows of: volatile keeps the order. */
#define CFU_DO(what, i, a, b) \
    __asm__ volatile(".insn r 0x0b, %0, %1, x0, %2, %3" ::"i"(what), "i"(i), "r"(a), "r"(b))

#define cfu_set(i, value) CFU_DO(0, i, value, 0)
#define cfu_dot(i, x, w) CFU_DO(1, i, x, w)
#define cfu_lanes(i, x, w) CFU_DO(2, i, x, w)

/* The accumulator's number is part of the instruction, so each has a function of its own. */
#define CFU_REQUANTIZE(i)                                                              \
    static inline int32_t cfu_requantize_##i(int32_t multiplier, int32_t packed_scale) \
    {                                                                                  \
        int32_t result;                                                                \
        __asm__ volatile(".insn r 0x0b, 3, %1, %0, %2, %3"                             \
                         : "=r"(result)                                                \
                         : "i"(i), "r"(multiplier), "r"(packed_scale));                \
        return result;                                                                 \
    }
CFU_REQUANTIZE(0)
CFU_REQUANTIZE(1)
CFU_REQUANTIZE(2)
CFU_REQUANTIZE(3)
CFU_REQUANTIZE(4)
CFU_REQUANTIZE(5)
CFU_REQUANTIZE(6)
CFU_REQUANTIZE(7)
CFU_REQUANTIZE(8)
CFU_REQUANTIZE(9)
CFU_REQUANTIZE(10)
CFU_REQUANTIZE(11)
CFU_REQUANTIZE(12)
CFU_REQUANTIZE(13)
CFU_REQUANTIZE(14)
CFU_REQUANTIZE(15)

/* i: a number as written, 0 to 15 */
#define cfu_requantize(i, multiplier, packed_scale) cfu_requantize_##i(multiplier, packed_scale)

/* Of a value that no accumulator holds: by way of number 0. */
static inline int32_t cfu_requantize_value(int32_t value, int32_t multiplier, int32_t packed_scale)
{
    cfu_set(0, value);
    return cfu_requantize(0, multiplier, packed_scale);
}

#endif
