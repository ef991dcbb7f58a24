/* Driver of the quantized conv2d accelerator. */
#ifndef QCONV2D_H
#define QCONV2D_H

#include <stdint.h>

/* Run one convolution and wait for it.
   job: the values of the registers from WEIGHTS to MODE, in the order of their addresses.
   input: int8, NHWC. output: int8, or int32 sums (4-byte aligned) where MODE says so.
   A job that the accelerator refuses stops the core in covp_job_refused. */
void qconv2d_run(const uintptr_t *job, const void *input, void *output);

#endif
