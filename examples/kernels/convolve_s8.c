/* A convolution by im2col: a window is written to the scratch memory as a row of int16 with the
 * input's offset added, and multiplied with every filter. */
#include "nn.h"

int32_t convolve_s8_get_buffer_size(const nn_dims *input_dims, const nn_dims *filter_dims)
{
    return filter_dims->h * filter_dims->w * input_dims->c * (int32_t)sizeof(int16_t);
}

static void write_window(const nn_conv_params *params, const nn_dims *in, const int8_t *image,
                         const nn_dims *filter, int32_t top, int32_t left, int16_t *row)
{
    for (int32_t ky = 0; ky < filter->h; ky++) {
        const int32_t y = top + ky * params->dilation.h;
        for (int32_t kx = 0; kx < filter->w; kx++) {
            const int32_t x = left + kx * params->dilation.w;
            const int inside = y >= 0 && y < in->h && x >= 0 && x < in->w;
            for (int32_t c = 0; c < in->c; c++)
                *row++ = inside ? (int16_t)(image[(y * in->w + x) * in->c + c] + params->input_offset)
                                : 0;
        }
    }
}

static int32_t multiply_row(const int16_t *row, const int8_t *filter, int32_t length)
{
    int32_t sum = 0, i = 0;
    for (; i + 4 <= length; i += 4) {
        sum += row[i] * filter[i] + row[i + 1] * filter[i + 1];
        sum += row[i + 2] * filter[i + 2] + row[i + 3] * filter[i + 3];
    }
    for (; i < length; i++)
        sum += row[i] * filter[i];
    return sum;
}

nn_status convolve_s8(const nn_context *ctx, const nn_conv_params *params,
                      const nn_per_channel_quant_params *quant, const nn_dims *input_dims,
                      const int8_t *input, const nn_dims *filter_dims, const int8_t *filter,
                      const int32_t *bias, const nn_dims *output_dims, int8_t *output)
{
    if (ctx->buf == NULL || ctx->size < convolve_s8_get_buffer_size(input_dims, filter_dims))
        return NN_ARGUMENT_ERROR;
    int16_t *row = ctx->buf;
    const int32_t length = filter_dims->h * filter_dims->w * input_dims->c;
    for (int32_t n = 0; n < input_dims->n; n++) {
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                const int32_t top = y * params->stride.h - params->padding.h;
                const int32_t left = x * params->stride.w - params->padding.w;
                write_window(params, input_dims, input, filter_dims, top, left, row);
                for (int32_t o = 0; o < output_dims->c; o++) {
                    int32_t sum = multiply_row(row, filter + o * length, length);
                    sum += bias != NULL ? bias[o] : 0;
                    sum = nn_requantize(sum, quant->multiplier[o], quant->shift[o]);
                    sum += params->output_offset;
                    *output++ = (int8_t)nn_clamp(sum, params->activation.min, params->activation.max);
                }
            }
        }
        input += input_dims->h * input_dims->w * input_dims->c;
    }
    return NN_SUCCESS;
}
