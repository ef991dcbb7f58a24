/* Drivers of a device that answers at once, late or never: `Answering` in test_drivers.py. */
#include "planted.h"

struct device { uint32_t start, status, result, flag; };
#if defined(__arm__)
#define DEVICE ((volatile struct device *)0x50080000)
#else
#define DEVICE ((volatile struct device *)0x70000000)
#endif
enum { DONE = 1 };
#define TRIES 1000

/* wait_forever: does not give up on a device that never answers. */
int32_t wait_forever(uint32_t value)
{
    DEVICE->status = 0;
    DEVICE->start = value;
    for (int32_t tries = 0; PLANTED(1, tries < TRIES); PLANTED((void)tries, tries++))
        if (DEVICE->status & DONE) /* BUG: endless poll */
            return (int32_t)DEVICE->result;
    return -1;
}

/* not_volatile: the status is read once. */
int32_t not_volatile(uint32_t value)
{
    PLANTED(struct device *, volatile struct device *) device = (void *)(uintptr_t)DEVICE;
    HIDE(device);
    device->status = 0;
    HIDE(device);
    device->start = value;
    HIDE(device);
    for (int32_t tries = 0; tries < TRIES; tries++) {
        if (device->status == DONE) /* BUG: wrong result */
            return (int32_t)device->result;
    }
    return -1;
}

/* read_at_once: takes the result without having looked whether it is there. */
int32_t read_at_once(uint32_t value)
{
    DEVICE->status = 0;
    DEVICE->start = value;
    for (int32_t tries = 0; tries < PLANTED(1, TRIES); tries++)
        if (DEVICE->status & DONE)
            return (int32_t)DEVICE->result;
    return PLANTED((int32_t)DEVICE->result, -1); /* BUG: wrong result */
}

/* clear_after_start: an answer that comes at once is thrown away. */
int32_t clear_after_start(uint32_t value)
{
    PLANTED(DEVICE->start = value, DEVICE->status = 0);
    PLANTED(DEVICE->status = 0, DEVICE->start = value); /* BUG: wrong result */
    for (int32_t tries = 0; tries < TRIES; tries++)
        if (DEVICE->status & DONE)
            return (int32_t)DEVICE->result;
    return -1;
}

/* stale_done: the answer to the job before is taken for this one's. */
int32_t stale_done(uint32_t value)
{
#ifndef BUG
    DEVICE->status = 0;
#endif
    DEVICE->start = value;
    for (int32_t tries = 0; tries < TRIES; tries++)
        if (DEVICE->status & DONE)
            return (int32_t)DEVICE->result; /* BUG: wrong result */
    return -1;
}

/* byte_index: an index of 8 bits never reaches 256. */
int32_t byte_index(const uint8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (PLANTED(uint8_t, int32_t) i = 0; i < n; i++) { /* BUG: timeout */
        int32_t value = x[i]; /* BUG: timeout */
        HIDE(value); /* BUG: timeout */
        sum ^= value; /* BUG: timeout */
    }
    return sum;
}

/* flag_in_memory: a flag that hardware sets in memory, without volatile. */
static PLANTED(uint32_t, volatile uint32_t) arrived;

int32_t flag_in_memory(uint32_t value)
{
    arrived = 0;
    DEVICE->status = 0;
    DEVICE->flag = (uint32_t)(uintptr_t)&arrived;
    DEVICE->start = value;
    for (int32_t tries = 0; tries < TRIES; tries++) {
        (void)DEVICE->status;
        if (arrived) /* BUG: wrong result */
            return (int32_t)DEVICE->result;
    }
    return -1;
}
