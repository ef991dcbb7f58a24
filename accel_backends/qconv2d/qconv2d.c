/* Driver of the quantized conv2d accelerator: it only handles the registers. */
#include "qconv2d.h"

#include "qconv2d_registers.h"

/* Memory and registers are seen in program order, by the compiler and on the bus. */
static inline void fence(void)
{
#if defined(__riscv)
    __asm__ volatile("fence iorw, iorw" ::: "memory");
#elif defined(__arm__)
    __asm__ volatile("dmb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

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
    fence();
    QCONV2D_CTRL = QCONV2D_CTRL_START_MASK;
    uint32_t status;
    do
        status = QCONV2D_STATUS;
    while (status & QCONV2D_STATUS_BUSY_MASK);
    fence();
    if (status & QCONV2D_STATUS_ERROR_MASK)
        qconv2d_job_refused(status);
}
