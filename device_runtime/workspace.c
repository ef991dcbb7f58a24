/* A stack of blocks. A block that is freed below others waits until those are free too. */
#include "workspace.h"

#include "covp_runtime.h"

#define ALIGNMENT 16u

/* Precedes every block and fills one unit of alignment. */
struct header {
    struct header *below;
    uint32_t in_use;
} __attribute__((aligned(ALIGNMENT)));

static struct header *top;
static uintptr_t next;
static uintptr_t end;

void covp_workspace_reset(uint8_t *memory, uint32_t bytes)
{
    top = NULL;
    next = ((uintptr_t)memory + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    end = (uintptr_t)memory + bytes;
}

void *covp_workspace_alloc(size_t bytes)
{
    size_t free_bytes = end > next ? end - next : 0;
    if (free_bytes < sizeof(struct header) || bytes > free_bytes - sizeof(struct header))
        return NULL;
    struct header *header = (struct header *)next;
    header->below = top;
    header->in_use = 1;
    top = header;
    next += sizeof(struct header) + ((bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
    return header + 1;
}

void covp_workspace_free(void *block)
{
    if (block == NULL)
        return;
    ((struct header *)block - 1)->in_use = 0;
    while (top != NULL && !top->in_use) {
        next = (uintptr_t)top;
        top = top->below;
    }
}
