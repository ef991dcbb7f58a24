/* Driver of the quantized conv2d accelerator: it only handles the registers. */
#include "qconv2d.h"

#include <covp_job.h>

#include "qconv2d_registers.h"

#ifndef QCONV2D_LINE
#define QCONV2D_LINE COVP_POLL
#endif

#define JOB_WORDS ((QCONV2D_MODE_OFFSET - QCONV2D_WEIGHTS_OFFSET) / 4 + 1)

void qconv2d_run(const uintptr_t *job, const void *input, void *output)
{
    volatile uint32_t *registers = &QCONV2D_WEIGHTS;
#pragma GCC unroll 16
    for (uint32_t i = 0; i < JOB_WORDS; i++)
        registers[i] = (uint32_t)job[i];
    QCONV2D_INPUT = (uint32_t)(uintptr_t)input;
    QCONV2D_OUTPUT = (uint32_t)(uintptr_t)output;
    covp_job_start(&QCONV2D_CTRL, QCONV2D_LINE);
    covp_job_wait(&QCONV2D_CTRL, QCONV2D_LINE);
}
