/* The protocol of job units: CTRL, STATUS and INTERRUPT are their first registers
   (covp.hardware.job.PROTOCOL; a test compares the numbers). */
#ifndef COVP_JOB_H
#define COVP_JOB_H

#include <covp_interrupt.h>

enum { COVP_CTRL, COVP_STATUS, COVP_INTERRUPT }; /* words from the unit's base */
#define COVP_CTRL_START 0x1u
#define COVP_STATUS_BUSY 0x1u
#define COVP_STATUS_ERROR 0xff00u
#define COVP_INTERRUPT_ENABLE 0x1u
#define COVP_INTERRUPT_PENDING 0x2u

/* In place of an interrupt line: the core polls STATUS instead of waiting by WFI. */
#define COVP_POLL 0xffffffffu

/* A function of its own, so that the fault's symbol names the cause; the status with its error
   code is in the first argument's register. */
static __attribute__((noinline, noreturn, unused)) void covp_job_refused(uint32_t status)
{
    __asm__ volatile("" ::"r"(status));
    __builtin_trap();
}

/* Start the job in the unit's registers while the core does something else: interrupts stay as
   they are until covp_job_end. line: as for it. */
static inline void covp_job_begin(volatile uint32_t *unit, uint32_t line)
{
    if (line != COVP_POLL)
        unit[COVP_INTERRUPT] = COVP_INTERRUPT_ENABLE | COVP_INTERRUPT_PENDING;
    covp_fence();
    unit[COVP_CTRL] = COVP_CTRL_START;
}

/* Start the job in the unit's registers. line: the one that wakes the core, or COVP_POLL. */
static inline void covp_job_start(volatile uint32_t *unit, uint32_t line)
{
    if (line != COVP_POLL)
        covp_wake_by_line(line);
    covp_job_begin(unit, line);
}

/* Wait for the job that was started with the same line; its result is in memory then. A
   rejected job stops the core in covp_job_refused. */
static inline void covp_job_wait(volatile uint32_t *unit, uint32_t line)
{
    if (line != COVP_POLL) {
        /* reading STATUS would advance the clock to the end; reading INTERRUPT does not */
        while (!(unit[COVP_INTERRUPT] & COVP_INTERRUPT_PENDING))
            covp_sleep();
        unit[COVP_INTERRUPT] = COVP_INTERRUPT_PENDING;
        covp_forget_line(line);
    }
    uint32_t status;
    do
        status = unit[COVP_STATUS];
    while (status & COVP_STATUS_BUSY);
    covp_fence();
    if (status & COVP_STATUS_ERROR)
        covp_job_refused(status);
}

/* Wait for the job that was started by covp_job_begin with the same line. */
static inline void covp_job_end(volatile uint32_t *unit, uint32_t line)
{
    if (line != COVP_POLL)
        covp_wake_by_line(line);
    covp_job_wait(unit, line);
}

#endif
