/* Memory of this process where it is short: a reserve is given up, the run ends before the next block, and
 * none begins until there is a reserve again. What does not even fit then is left out: the machine's counts
 * are lost, and it runs no more.
 */
#ifndef COVP_RESERVE_H
#define COVP_RESERVE_H

#include <errno.h>

#include "counter_state.h"

enum { RESERVE_BYTES = 64 << 20 }; /* more than all that is allocated until a run ends */

static void *_Atomic reserve;
static _Thread_local Machine *running;

static bool has_reserve(void) {
    if (LIKELY(atomic_load(&reserve) != NULL)) return true;
    void *fresh = malloc(RESERVE_BYTES), *none = NULL;
    if (fresh && !atomic_compare_exchange_strong(&reserve, &none, fresh)) free(fresh);
    return fresh != NULL;
}

SELDOM static void give_up_reserve(void) {
    free(atomic_exchange(&reserve, NULL));
    if (running) running->limit = running->ceiling = 0;
}

static void *reserved_malloc(size_t size) {
    void *memory = malloc(size);
    if (LIKELY(memory != NULL)) return memory;
    give_up_reserve();
    return malloc(size);
}

static void *reserved_calloc(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (LIKELY(memory != NULL)) return memory;
    give_up_reserve();
    return calloc(count, size);
}

static void *reserved_realloc(void *items, size_t size) {
    void *memory = realloc(items, size);
    if (LIKELY(memory != NULL) || !size) return memory;
    give_up_reserve();
    return realloc(items, size);
}

/* NULL: the counts are lost. */
static void *kept(Machine *m, void *memory) {
    if (LIKELY(memory != NULL)) return memory;
    m->lost = true;
    m->limit = m->ceiling = 0;
    return NULL;
}

static void *zeroed(Machine *m, size_t count, size_t size) { return kept(m, reserved_calloc(count, size)); }

static void *grown(Machine *m, void *items, size_t bytes) { return kept(m, reserved_realloc(items, bytes)); }

/* -- the emulator, which ends the process where it gets no memory (ELF on x86-64) ------------------- */

#if defined(__linux__) && defined(__x86_64__)
#include "relocations.h"

static int reserved_memalign(void **memory, size_t alignment, size_t size) {
    if (LIKELY(posix_memalign(memory, alignment, size) != ENOMEM)) return 0;
    give_up_reserve();
    return posix_memalign(memory, alignment, size);
}

/* A library takes memory from here. False: it does not. */
static bool share_reserve(const void *inside) {
    Redirection all[] = {
        {IMPORTED, "malloc", (void *)reserved_malloc, 0},
        {IMPORTED, "calloc", (void *)reserved_calloc, 0},
        {IMPORTED, "realloc", (void *)reserved_realloc, 0},
        {IMPORTED, "posix_memalign", (void *)reserved_memalign, 0},
    };
    return redirect(inside, all, sizeof all / sizeof *all);
}

#else
static bool share_reserve(const void *inside) {
    (void)inside;
    return false;
}
#endif

/* Memory is kept for what runs from now on, the emulator's included. 0: there is not enough. */
EXPORT int machine_keep_reserve(const void *inside) {
    static atomic_flag is_shared = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&is_shared)) share_reserve(inside);
    return has_reserve();
}

#endif
