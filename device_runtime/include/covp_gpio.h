/* The registers of covp's pins (peripherals/gpio.py; a test compares the numbers): bit n is pin n.
   Their address is the platform's. */
#ifndef COVP_GPIO_H
#define COVP_GPIO_H

#include <stdint.h>

struct covp_gpio {
    volatile uint32_t direction; /* 1: output */
    volatile uint32_t output;
    volatile uint32_t set;
    volatile uint32_t clear;
    volatile uint32_t toggle;
    const volatile uint32_t input;
    volatile uint32_t rising;
    volatile uint32_t falling;
    volatile uint32_t pending; /* a one that is written clears a bit */
};

#endif
