/* Driver of the quantized conv2d accelerator: it only handles the registers. */
#include "qconv2d.h"

#include <covp_interrupt.h>

#include "qconv2d_registers.h"

/* A function of its own, so that the fault's symbol tells what happened; the status with its error
   code is in the first argument's register. */
static __attribute__((noinline, noreturn)) void qconv2d_job_refused(uint32_t status)
{
    __asm__ volatile("" ::"r"(status));
    __builtin_trap();
}

#define JOB_WORDS ((QCONV2D_MODE_OFFSET - QCONV2D_WEIGHTS_OFFSET) / 4 + 1)

void qconv2d_run(const uintptr_t *job, const void *input, void *output)
{
    volatile uint32_t *registers = &QCONV2D_WEIGHTS;
#pragma GCC unroll 16
    for (uint32_t i = 0; i < JOB_WORDS; i++)
        registers[i] = (uint32_t)job[i];
    QCONV2D_INPUT = (uint32_t)(uintptr_t)input;
    QCONV2D_OUTPUT = (uint32_t)(uintptr_t)output;
#ifdef QCONV2D_SLEEP
    covp_wake_by_line(QCONV2D_IRQ);
    QCONV2D_INTERRUPT = QCONV2D_INTERRUPT_ENABLE_MASK | QCONV2D_INTERRUPT_PENDING_MASK;
#endif
    covp_fence();
    QCONV2D_CTRL = QCONV2D_CTRL_START_MASK;
#ifdef QCONV2D_SLEEP
    while (!(QCONV2D_INTERRUPT & QCONV2D_INTERRUPT_PENDING_MASK))
        covp_sleep();
    QCONV2D_INTERRUPT = QCONV2D_INTERRUPT_PENDING_MASK;
    covp_forget_line(QCONV2D_IRQ);
#endif
    uint32_t status;
    do
        status = QCONV2D_STATUS;
    while (status & QCONV2D_STATUS_BUSY_MASK);
    covp_fence();
    if (status & QCONV2D_STATUS_ERROR_MASK)
        qconv2d_job_refused(status);
}
