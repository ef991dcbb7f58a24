/* Misaligned accesses, as the accesses themselves tell: faults, or what memories.h times. */
#ifndef COVP_MISALIGNED_H
#define COVP_MISALIGNED_H

#include "memories.h"

/* Whether a misaligned access by an instruction is a fault. Armv7-M lets single loads and stores pass, and
 * table branches, but not those of several registers, of floats, and exclusive ones (DDI0403E A3.2.1).
 */
static bool must_align(const Machine *m, Instruction i) {
    if (m->all_aligned || !m->is_thumb) return m->all_aligned;
    if (i.bytes == 2) return i.bits >> 12 == 12;
    bool is_table_branch = (i.bits & 0xfff0ffe0) == 0xe8d0f000;
    return ((i.bits & 0xfe000000) == 0xe8000000 && !is_table_branch) ||
           (i.bits & 0xfe000000) == 0xec000000;
}

/* A misaligned access ends the run before it is made. */
static void refuse_misaligned(Machine *m, uint32_t address, uint32_t size) {
    m->misaligned = 1;
    m->access_address = address;
    m->access_size = size < WORD ? size : WORD;
}

#endif
