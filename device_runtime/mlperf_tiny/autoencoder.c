/* ad01: the host sends float32 features, little-endian; the result is the mean squared distance
 * between them and what the autoencoder makes of them. */
#include "tiny_benchmark.h"
#include "protocol.h"

static union {
    uint8_t bytes[TINY_INPUT_ELEMENTS * sizeof(float)];
    float values[TINY_INPUT_ELEMENTS];
} features;
static int8_t input[TINY_INPUT_ELEMENTS];

const uint32_t tiny_bytes = sizeof features;

uint8_t *tiny_buffer(void)
{
    return features.bytes;
}

/* round(value / scale) + zero point, halves away from 0, clamped; what is no number becomes the
 * zero point. */
static int8_t quantized(float value)
{
    float steps = value / TINY_INPUT_SCALE;
    if (!(steps > -512.0f))
        return steps <= -512.0f ? INT8_MIN : (int8_t)(TINY_INPUT_ZERO_POINT);
    if (steps > 512.0f)
        return INT8_MAX;
    int32_t whole = (int32_t)steps; /* towards 0 */
    float rest = steps - (float)whole;
    if (rest >= 0.5f)
        whole++;
    else if (rest <= -0.5f)
        whole--;
    whole += TINY_INPUT_ZERO_POINT;
    return (int8_t)(whole < INT8_MIN ? INT8_MIN : whole > INT8_MAX ? INT8_MAX : whole);
}

void tiny_prepare(void)
{
    for (uint32_t i = 0; i < TINY_INPUT_ELEMENTS; i++)
        input[i] = quantized(features.values[i]);
}

bool tiny_once(void)
{
    return tiny_compute(input);
}

/* In double precision: float32 would lose the third decimal of large sums. */
void tiny_print(void)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < TINY_INPUT_ELEMENTS; i++) {
        int32_t steps = tiny_result[i] - (TINY_OUTPUT_ZERO_POINT);
        double distance = (double)TINY_OUTPUT_SCALE * steps - (double)features.values[i];
        sum += distance * distance;
    }
    double thousandths = sum / TINY_INPUT_ELEMENTS * 1000.0 + 0.5;
    reply_thousandths(thousandths < 1e15 ? (uint64_t)thousandths : 1000000000000000u);
}
