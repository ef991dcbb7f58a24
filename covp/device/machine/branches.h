/* Direct branches: those whose target is in the instruction. */
#ifndef COVP_BRANCHES_H
#define COVP_BRANCHES_H

#include "counter_state.h"

static inline uint32_t field(uint32_t bits, int low, int count, int to) {
    return (bits >> low & ((1u << count) - 1)) << to;
}

static inline uint32_t extended(uint32_t value, int bits) {
    return (uint32_t)((int32_t)(value << (32 - bits)) >> (32 - bits));
}

/* RISC-V unprivileged ISA 20191213: 2.5 (jal, beq and its kin), 16.4 (their compressed forms). */
static bool riscv_offset(Instruction i, uint32_t *offset) {
    uint32_t b = i.bits, kind = b & 0xe003;
    if (i.bytes == 2 && (kind == 0xa001 || kind == 0x2001)) { /* c.j, c.jal */
        *offset = extended(field(b, 12, 1, 11) | field(b, 11, 1, 4) | field(b, 9, 2, 8) |
                           field(b, 8, 1, 10) | field(b, 7, 1, 6) | field(b, 6, 1, 7) |
                           field(b, 3, 3, 1) | field(b, 2, 1, 5), 12);
    } else if (i.bytes == 2 && (kind == 0xc001 || kind == 0xe001)) { /* c.beqz, c.bnez */
        *offset = extended(field(b, 12, 1, 8) | field(b, 10, 2, 3) | field(b, 5, 2, 6) |
                           field(b, 3, 2, 1) | field(b, 2, 1, 5), 9);
    } else if (i.bytes == 4 && (b & 0x7f) == 0x63) {
        *offset = extended(field(b, 31, 1, 12) | field(b, 25, 6, 5) | field(b, 8, 4, 1) |
                           field(b, 7, 1, 11), 13);
    } else if (i.bytes == 4 && (b & 0x7f) == 0x6f) {
        *offset = extended(field(b, 31, 1, 20) | field(b, 21, 10, 1) | field(b, 20, 1, 11) |
                           field(b, 12, 8, 12), 21);
    } else {
        return false;
    }
    return true;
}

/* Arm DDI0403E A7.7.12 (b), A7.7.18 (bl), A7.7.21 (cbz, cbnz); from 4 bytes after the branch. */
static bool thumb_offset(Instruction i, uint32_t *offset) {
    uint32_t b = i.bits;
    if (i.bytes == 2 && (b & 0xf000) == 0xd000 && (b & 0x0e00) != 0x0e00) {
        *offset = extended(field(b, 0, 8, 1), 9);
    } else if (i.bytes == 2 && (b & 0xf800) == 0xe000) {
        *offset = extended(field(b, 0, 11, 1), 12);
    } else if (i.bytes == 2 && (b & 0xf500) == 0xb100) {
        *offset = field(b, 9, 1, 6) | field(b, 3, 5, 1);
    } else if (i.bytes == 4 && (b & 0xf8009000) == 0xf0009000) { /* b.w, bl */
        uint32_t sign = b >> 26 & 1, other = sign ^ 1;
        *offset = extended(sign << 24 | ((b >> 13 & 1) ^ other) << 23 | ((b >> 11 & 1) ^ other) << 22 |
                           field(b, 16, 10, 12) | field(b, 0, 11, 1), 25);
    } else if (i.bytes == 4 && (b & 0xf800d000) == 0xf0008000 && (b & 0x03800000) != 0x03800000) {
        *offset = extended(field(b, 26, 1, 20) | field(b, 11, 1, 19) | field(b, 13, 1, 18) |
                           field(b, 16, 6, 12) | field(b, 0, 11, 1), 21);
    } else {
        return false;
    }
    *offset += 4;
    return true;
}

/* Whether an instruction at pc is a direct branch; *target is where it leads. */
static bool direct_branch(const Machine *m, Instruction i, uint32_t pc, uint32_t *target) {
    uint32_t offset;
    if (i.is_custom) return false;
    if (!(m->is_thumb ? thumb_offset(i, &offset) : riscv_offset(i, &offset))) return false;
    *target = pc + offset;
    return true;
}

#endif
