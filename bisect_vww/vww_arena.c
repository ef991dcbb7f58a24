/* The memory of all activations; leave the file out to bring your own. */
#include "vww_infer.h"

uint8_t vww_arena[34240] __attribute__((aligned(16)));
