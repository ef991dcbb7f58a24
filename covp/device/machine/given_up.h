/* Accesses that are given up: faults, and what the host stops at.
 *
 * The emulator does more than the core then. It stores bytes of an access up to the page that there is not.
 * Where calls are not inlined it does what was refused and leaves after it, in an IT block at the end of all.
 * When the run is over, all that is taken back.
 */
#ifndef COVP_GIVEN_UP_H
#define COVP_GIVEN_UP_H

#include "tlb.h"

/* The core is about to make an access. */
static inline void begin_access(Machine *m, uint32_t address, uint32_t size) {
    m->access_address = address;
    m->access_size = size;
    m->kept_count = 0;
}

/* Bytes are about to be stored to. */
static void keep_before(Machine *m, uint32_t address, uint32_t size) {
    for (uint32_t n = 0; n < size && m->kept_count < MOST_KEPT; n++) {
        const uint8_t *at = host_bytes(m, address + n, 1);
        if (at) m->kept[m->kept_count++] = (KeptByte){address + n, *at};
    }
}

/* Inside an IT block, whose state is there while Unicorn calls a hook: the emulator does not leave at once. */
static void keep_registers(Machine *m, uc_engine *uc) {
    uint64_t value = 0;
    m->has_context = false;
    if (!m->xpsr || m->reg_read(uc, (int)m->xpsr, &value) || !(value & IT_BITS)) return;
    if (m->context || !m->context_alloc(uc, &m->context)) m->has_context = !m->context_save(uc, m->context);
    clear_it_bits(m, uc);
}

/* The access is not made, and nothing after it: no other block is entered. */
static void give_up(Machine *m) {
    m->given_up = 1;
    m->limit = 0;
}

/* The run is over. */
static void take_back(Machine *m, uc_engine *uc) {
    if (!m->given_up) return;
    while (m->kept_count) {
        const KeptByte *kept = &m->kept[--m->kept_count];
        *(uint8_t *)host_bytes(m, kept->address, 1) = kept->byte;
    }
    if (m->has_context) m->context_restore(uc, m->context);
    m->has_context = false;
}

#endif
