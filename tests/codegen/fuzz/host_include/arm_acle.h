/* Arm's intrinsics as kernels use them, in portable C: their meaning from the ACLE, for the host. */
#pragma once
#include <stdint.h>

#define __builtin_arm_ssat __ssat

static inline int32_t __ssat(int32_t value, unsigned bits)
{
    int32_t most = (int32_t)((1u << (bits - 1)) - 1);
    return value > most ? most : value < -most - 1 ? -most - 1 : value;
}

/* modulo 2**32, as the instruction */
static inline int32_t __smlad(int32_t a, int32_t b, int32_t sum)
{
    int32_t low = (int16_t)a * (int16_t)b, high = (a >> 16) * (b >> 16);
    return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
}

static inline int32_t __sxtb16(int32_t bytes)
{
    uint32_t word = (uint32_t)bytes;
    uint32_t low = (uint16_t)(int8_t)word, high = (uint16_t)(int8_t)(word >> 16);
    return (int32_t)(low | (high << 16));
}

static inline uint32_t __uxtb16(uint32_t word)
{
    return word & 0x00ff00ffu;
}

/* each half modulo 2**16 */
static inline int32_t __ssub16(int32_t a, int32_t b)
{
    uint32_t low = ((uint32_t)a - (uint32_t)b) & 0xffffu;
    return (int32_t)(low | ((((uint32_t)a >> 16) - ((uint32_t)b >> 16)) << 16));
}

static inline int32_t __smlabb(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)a * (int16_t)b));
}

static inline int32_t __smlatt(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((a >> 16) * (b >> 16)));
}
