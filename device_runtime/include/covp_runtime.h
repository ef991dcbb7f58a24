/* Services of the runtime for C code on the target. */
#ifndef COVP_RUNTIME_H
#define COVP_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* Working memory until the matching free, aligned to 16 bytes; NULL when none is left.
 * Blocks may be given back in any order; memory is reused once all later blocks are free too.
 * All of it is taken back when a task ends. */
void *covp_workspace_alloc(size_t bytes);
void covp_workspace_free(void *block);

#endif
