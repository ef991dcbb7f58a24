/* Driver of the systolic array. */
#ifndef GEMM_H
#define GEMM_H

#include <stdint.h>

/* A convolution of int8 images (NHWC), in strips of at most strip_rows output rows.
   image: the values of the registers from WEIGHTS to HIGH, in the order of their addresses.
   input_bytes: of an image. row_bytes: of an output row, of which an image has out_rows.
   A job that the unit refuses stops the core in covp_job_refused. */
void gemm_run(const uintptr_t *image, const void *input, void *output, uint32_t batch,
              uint32_t input_bytes, uint32_t row_bytes, uint32_t out_rows, uint32_t strip_rows);

#endif
