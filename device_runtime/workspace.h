/* The memory of covp_workspace_alloc. */
#ifndef COVP_WORKSPACE_H
#define COVP_WORKSPACE_H

#include <stdint.h>

/* Forget all blocks and start over with this memory. */
void covp_workspace_reset(uint8_t *memory, uint32_t bytes);

#endif
