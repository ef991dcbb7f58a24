/* The result of a classifier: the probability of each class. */
#include "tiny_benchmark.h"
#include "protocol.h"

void tiny_print(void)
{
    for (uint32_t i = 0; i < TINY_OUTPUT_ELEMENTS; i++) {
        if (i != 0)
            reply(",");
        reply_float(TINY_OUTPUT_SCALE * (float)(tiny_result[i] - (TINY_OUTPUT_ZERO_POINT)));
    }
}
