/* The model's library with an arena of its own. */
#include "tiny_benchmark.h"

static uint8_t arena[TINY_ARENA_BYTES] __attribute__((aligned(TINY_ARENA_ALIGNMENT)));
static tiny_context context;

int8_t tiny_result[TINY_OUTPUT_ELEMENTS];

bool tiny_start(void)
{
    return tiny_library_init(&context, arena, sizeof arena) == 0;
}

bool tiny_compute(const int8_t *input)
{
    return tiny_library_run(&context, input, tiny_result) == 0;
}
