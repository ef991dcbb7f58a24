/* ic01, ic02, vww01: an image of bytes, 0 is black; the models' zero point is -128, their scale
 * that of the bytes. */
#include "tiny_benchmark.h"

static uint8_t image[TINY_INPUT_ELEMENTS];
static int8_t input[TINY_INPUT_ELEMENTS];

const uint32_t tiny_bytes = sizeof image;

uint8_t *tiny_buffer(void)
{
    return image;
}

void tiny_prepare(void)
{
    for (uint32_t i = 0; i < sizeof image; i++)
        input[i] = (int8_t)((int32_t)image[i] - 128);
}

bool tiny_once(void)
{
    return tiny_compute(input);
}
