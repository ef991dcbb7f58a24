/* kws01: the host sends quantized features, which are the model's input as they are. */
#include "tiny_benchmark.h"

static union {
    uint8_t bytes[TINY_INPUT_ELEMENTS];
    int8_t input[TINY_INPUT_ELEMENTS];
} features;

const uint32_t tiny_bytes = sizeof features;

uint8_t *tiny_buffer(void)
{
    return features.bytes;
}

void tiny_prepare(void)
{
}

bool tiny_once(void)
{
    return tiny_compute(features.input);
}
