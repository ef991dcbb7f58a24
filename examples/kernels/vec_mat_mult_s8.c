/* A fully connected layer in the style of muRISCV-NN: all parameters are arguments, and two rows of
 * the matrix are multiplied at once, so that each element of the vector is loaded once for both. */
#include "nn.h"

static int8_t finish(int32_t sum, int32_t output_offset, int32_t multiplier, int32_t shift,
                     int32_t activation_min, int32_t activation_max)
{
    const int32_t scaled = nn_requantize(sum, multiplier, shift) + output_offset;
    return (int8_t)nn_clamp(scaled, activation_min, activation_max);
}

nn_status vec_mat_mult_t_s8(const int8_t *vector, const int8_t *matrix, const int32_t *bias,
                            int8_t *output, int32_t input_offset, int32_t output_offset,
                            int32_t multiplier, int32_t shift, int32_t columns, int32_t rows,
                            int32_t activation_min, int32_t activation_max)
{
    int32_t row = 0;
    for (; row + 2 <= rows; row += 2) {
        const int8_t *first = matrix + row * columns, *second = first + columns;
        int32_t sums[2] = {bias ? bias[row] : 0, bias ? bias[row + 1] : 0};
        for (int32_t i = 0; i < columns; i++) {
            const int32_t value = vector[i] + input_offset;
            sums[0] += value * first[i];
            sums[1] += value * second[i];
        }
        for (int32_t k = 0; k < 2; k++)
            output[row + k] = finish(sums[k], output_offset, multiplier, shift, activation_min,
                                     activation_max);
    }
    if (row < rows) {
        const int8_t *last = matrix + row * columns;
        int32_t sum = bias ? bias[row] : 0;
        for (int32_t i = 0; i < columns; i++)
            sum += (vector[i] + input_offset) * last[i];
        output[row] = finish(sum, output_offset, multiplier, shift, activation_min, activation_max);
    }
    return NN_SUCCESS;
}
