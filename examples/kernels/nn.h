/* A small library of int8 kernels in the style of CMSIS-NN: dimensions, parameters and the scratch
 * memory come as structures. Written for covp's documentation. */
#ifndef NN_H
#define NN_H

#include <stddef.h>
#include <stdint.h>

typedef enum { NN_SUCCESS = 0, NN_ARGUMENT_ERROR = -1 } nn_status;

typedef struct { /* scratch memory of a call */
    void *buf;
    int32_t size;
} nn_context;

typedef struct { /* of a tensor: NHWC, filters OHWI */
    int32_t n, h, w, c;
} nn_dims;

typedef struct {
    int32_t w, h;
} nn_tile;

typedef struct {
    int32_t min, max;
} nn_activation;

typedef struct {
    int32_t input_offset; /* the negative zero point of the input */
    int32_t output_offset;
    nn_tile stride, padding, dilation;
    nn_activation activation;
} nn_conv_params;

typedef struct { /* one of each for every output channel */
    const int32_t *multiplier;
    const int32_t *shift;
} nn_per_channel_quant_params;

/* Bytes of scratch memory that convolve_s8 needs. */
int32_t convolve_s8_get_buffer_size(const nn_dims *input_dims, const nn_dims *filter_dims);

/* A convolution; bias may be NULL. */
nn_status convolve_s8(const nn_context *ctx, const nn_conv_params *params,
                      const nn_per_channel_quant_params *quant, const nn_dims *input_dims,
                      const int8_t *input, const nn_dims *filter_dims, const int8_t *filter,
                      const int32_t *bias, const nn_dims *output_dims, int8_t *output);

/* value * multiplier / 2^31 * 2^shift as TFLite rounds it. */
static inline int32_t nn_requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    const int64_t product = (int64_t)(value * (INT32_C(1) << left)) * multiplier;
    const int32_t high = (int32_t)((product + (INT64_C(1) << 30)) >> 31);
    const int32_t mask = (int32_t)((UINT32_C(1) << right) - 1);
    const int32_t threshold = (mask >> 1) + (high < 0);
    return (high >> right) + ((high & mask) > threshold);
}

static inline int32_t nn_clamp(int32_t value, int32_t min, int32_t max)
{
    return value < min ? min : value > max ? max : value;
}

#endif
