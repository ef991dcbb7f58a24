/* Instructions in memory: their bits, and whether the host has to execute them. */
#ifndef COVP_DECODE_H
#define COVP_DECODE_H

#include "counter_state.h"

static uint32_t half(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8; }

/* The number of the custom instruction that is patched out at p, or 0. */
static uint32_t custom_at(const Machine *m, const uint8_t *p, const uint8_t *end) {
    if (!m->custom_count || p + 4 > end) return 0;
    uint32_t bits;
    memcpy(&bits, p, sizeof bits); /* hosts are little-endian as the cores are */
    uint32_t number = patch_number(bits);
    return number < m->custom_count ? number : 0;
}

/* The instruction at p, its bits as the manuals write them (Arm: first halfword on top). */
static Instruction fetch(const Machine *m, const uint8_t *p, const uint8_t *end) {
    uint32_t number = custom_at(m, p, end);
    if (number) return (Instruction){.bits = m->customs[number].bits, .bytes = 4, .is_custom = 1, .cycles = m->customs[number].cycles};
    uint32_t first = half(p);
    bool wide = m->is_thumb ? first >= 0xe800 : (first & 3) == 3;
    if (!wide || p + 4 > end) return (Instruction){.bits = first, .bytes = 2};
    uint32_t bits = m->is_thumb ? first << 16 | half(p + 2) : first | half(p + 2) << 16;
    return (Instruction){.bits = bits, .bytes = 4};
}

/* Whether the emulator must not execute the instruction at p: it needs the host, or this core does
 * not implement it.
 */
static bool is_special(const Machine *m, const uint8_t *p, const uint8_t *end, Instruction i) {
    if (i.is_custom) return !m->customs[custom_at(m, p, end)].function;
    for (uint64_t n = 0; n < m->special_count; n++) {
        const Special *s = &m->specials[n];
        if (s->bytes == i.bytes && (i.bits & s->mask) == s->match) return s->is_special;
    }
    return false;
}

#endif
