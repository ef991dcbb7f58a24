/* A 3x3 convolution without padding, destination-passing style. */
#include <stdint.h>

void conv(const int8_t *image, const int8_t *kernel, int32_t *result, int32_t height, int32_t width)
{
    for (int32_t y = 0; y < height - 2; y++)
        for (int32_t x = 0; x < width - 2; x++) {
            int32_t sum = 0;
            for (int32_t i = 0; i < 3; i++)
                for (int32_t j = 0; j < 3; j++)
                    sum += image[(y + i) * width + x + j] * kernel[i * 3 + j];
            result[y * (width - 2) + x] = sum;
        }
}
