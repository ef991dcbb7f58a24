/* Instructions in memory: their bits, whether the host has to execute them, and their cycles. */
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
    if (number) return (Instruction){m->customs[number].bits, 4, 1, m->customs[number].cycles};
    uint32_t first = half(p);
    bool wide = m->is_thumb ? first >= 0xe800 : (first & 3) == 3;
    if (!wide || p + 4 > end) return (Instruction){first, 2, 0, 0};
    uint32_t bits = m->is_thumb ? first << 16 | half(p + 2) : first | half(p + 2) << 16;
    return (Instruction){bits, 4, 0, 0};
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

static const Rule *find_rule(const Machine *m, Instruction i) {
    static const Rule one_cycle = {.cycles = 1};
    for (uint64_t n = 0; n < m->rule_count; n++) {
        const Rule *r = &m->rules[n];
        if (r->bytes == i.bytes && (i.bits & r->mask) == r->match) return r;
    }
    return &one_cycle;
}

/* Cycles of an instruction. *before is the rule of the one before it, and becomes its own. */
static uint32_t cost(const Machine *m, Instruction i, const Rule **before) {
    static const Rule custom = {0};
    const Rule *rule = i.is_custom ? &custom : find_rule(m, i), *previous = *before;
    *before = rule;
    if (i.is_custom) return i.cycles;
    uint32_t listed = i.bits & rule->list;
    uint32_t cycles = rule->cycles;
    cycles += rule->flags & RULE_COUNTED ? listed : (uint32_t)__builtin_popcount(listed);
    if (!cycles) return 0;
    bool pipelined = (previous->flags & RULE_LOAD) && (rule->flags & RULE_MEMORY);
    bool paired = previous->unit && rule->unit && previous->unit != rule->unit;
    if (!pipelined && !paired) return cycles;
    if (rule->unit) *before = &custom; /* a pair is two instructions, not a chain */
    return cycles - 1;
}

#endif
