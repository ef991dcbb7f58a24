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

#define cfu_requantize(i, multiplier, packed_scale)                                   \
    ({                                                                                \
        int32_t cfu_result;                                                           \
        __asm__ volatile(".insn r 0x0b, 3, %1, %0, %2, %3"                            \
                         : "=r"(cfu_result)                                           \
                         : "i"(i), "r"(multiplier), "r"(packed_scale));               \
        cfu_result;                                                                   \
    })

#endif
