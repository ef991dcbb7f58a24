/* Driver of the systolic array: cuts a layer into strips that fit the unit's memories. While a
   strip is computed the registers of the next one are written: a job works on the registers as they
   were when it started. */
#include "gemm.h"

#include <covp_job.h>

#include "gemm_registers.h"

#ifndef GEMM_LINE
#define GEMM_LINE COVP_POLL
#endif

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
                covp_job_wait(&GEMM_CTRL, GEMM_LINE);
            covp_job_start(&GEMM_CTRL, GEMM_LINE);
            running = 1;
        }
        from += input_bytes;
    }
    covp_job_wait(&GEMM_CTRL, GEMM_LINE);
}
