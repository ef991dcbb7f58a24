/* The registers of covp's sampler (peripherals/sampler.py; a test compares the numbers). Its
   address is the platform's. */
#ifndef COVP_SAMPLER_H
#define COVP_SAMPLER_H

#include <stdint.h>

struct covp_sampler {
    volatile uint32_t control;
    volatile uint32_t status;
    volatile uint32_t period;
    volatile uint32_t data;
};
#define COVP_SAMPLER_ENABLE 0x1u
#define COVP_SAMPLER_INTERRUPT 0x2u
#define COVP_SAMPLER_COUNT 0xffffu
#define COVP_SAMPLER_OVERRUN 0x10000u
#define COVP_SAMPLER_END 0x20000u

#endif
