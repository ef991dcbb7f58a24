/* Driver of the systolic array: cuts a layer into strips that fit the unit's memories. While a
   strip is computed the registers of the next one are written: a job works on the registers as they
   were when it started. */
#include "gemm.h"

#include <covp_interrupt.h>

#include "gemm_registers.h"

/* A function of its own, so that the fault's symbol tells what happened; the status with its error
   code is in the first argument's register. */
static __attribute__((noinline, noreturn)) void gemm_job_refused(uint32_t status)
{
    __asm__ volatile("" ::"r"(status));
    __builtin_trap();
}

static void start(void)
{
#ifdef GEMM_SLEEP
    covp_wake_by_line(GEMM_IRQ);
    GEMM_INTERRUPT = GEMM_INTERRUPT_ENABLE_MASK | GEMM_INTERRUPT_PENDING_MASK;
#endif
    covp_fence();
    GEMM_CTRL = GEMM_CTRL_START_MASK;
}

static void wait(void)
{
#ifdef GEMM_SLEEP
    while (!(GEMM_INTERRUPT & GEMM_INTERRUPT_PENDING_MASK))
        covp_sleep();
    GEMM_INTERRUPT = GEMM_INTERRUPT_PENDING_MASK;
    covp_forget_line(GEMM_IRQ);
#endif
    uint32_t status;
    do
        status = GEMM_STATUS;
    while (status & GEMM_STATUS_BUSY_MASK);
    if (status & GEMM_STATUS_ERROR_MASK)
        gemm_job_refused(status);
}

void gemm_run(const uintptr_t *image, const void *input, void *output, uint32_t batch,
              uint32_t input_bytes, uint32_t row_bytes, uint32_t out_rows, uint32_t strip_rows)
{
    uint32_t from = (uint32_t)(uintptr_t)input, to = (uint32_t)(uintptr_t)output;
    int running = 0;
    for (; batch > 0; batch--) {
        GEMM_INPUT = from;
        for (uint32_t row = 0; row < out_rows; row += strip_rows) {
            uint32_t rows = out_rows - row < strip_rows ? out_rows - row : strip_rows;
            GEMM_DESCRIPTOR = (uint32_t)(uintptr_t)image;
            GEMM_FIRST_ROW = row;
            GEMM_ROWS = rows;
            GEMM_OUTPUT = to;
            to += rows * row_bytes;
            if (running)
                wait();
            start();
            running = 1;
        }
        from += input_bytes;
    }
    wait();
    covp_fence();
}
