/* Depthwise convolution on the tightly coupled unit, four channels at once. */
#ifndef CFU_DEPTHWISE_H
#define CFU_DEPTHWISE_H

#include <stdint.h>

/* Four channels, of whatever type the memory is. */
typedef uint32_t __attribute__((may_alias)) cfu_word;

/* Passed as words, in this order. */
struct __attribute__((may_alias)) cfu_depthwise {
    const cfu_word *weights; /* by groups of four channels: a word for each tap */
    const int32_t *table;    /* by channel: bias, multiplier, packed scale */
    int32_t in_height, in_width, channels, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_height, stride_width;
    int32_t pad_top, pad_left, pad_right;
    uint32_t zero_points; /* four times the input's */
};

/* rows: kernel_height padded rows of the input. input and output: NHWC, 4-byte aligned. */
void cfu_depthwise(const uintptr_t *words, const void *input, void *output, void *rows,
                   uint32_t batch);

#endif
