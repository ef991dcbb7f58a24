/* The registers of covp's timer (peripherals/timer.py; a test compares the numbers). Its address
   is the platform's. */
#ifndef COVP_TIMER_H
#define COVP_TIMER_H

#include <stdint.h>

struct covp_timer {
    volatile uint32_t ctrl;
    volatile uint32_t status;
    volatile uint32_t period;
    volatile uint32_t prescale;
    const volatile uint32_t count;
    const volatile uint32_t expirations;
};
#define COVP_TIMER_ENABLE 0x1u
#define COVP_TIMER_PERIODIC 0x2u
#define COVP_TIMER_INTERRUPT 0x4u
#define COVP_TIMER_EXPIRED 0x1u
#define COVP_TIMER_MISSED 0x2u

/* Expire every period ticks of prescale + 1 cycles, with an interrupt. */
static inline void covp_timer_start(struct covp_timer *timer, uint32_t period, uint32_t prescale)
{
    timer->ctrl = 0;
    timer->status = COVP_TIMER_EXPIRED | COVP_TIMER_MISSED;
    timer->period = period;
    timer->prescale = prescale;
    timer->ctrl = COVP_TIMER_ENABLE | COVP_TIMER_PERIODIC | COVP_TIMER_INTERRUPT;
}

#endif
