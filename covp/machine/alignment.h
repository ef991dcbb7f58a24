/* Finds misaligned accesses before a block runs, from the registers at its start.
 *
 * Unicorn executes any unaligned access; for Cortex-M0 it finds those that miss its table of pages alone.
 * Watching every access would make the emulator several times as slow, so that the first runs of each
 * block are looked at instead: addresses whose base register the block has not changed in a way this
 * file cannot follow.
 */
#ifndef COVP_ALIGNMENT_H
#define COVP_ALIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t value[32];
    uint32_t known; /* a bit for each register whose value is certain */
} Registers;

typedef struct { uint32_t address, size; } Access;

static inline int32_t sign_extend(uint32_t value, int bits) {
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

static inline bool is_misaligned(const Registers *r, uint32_t base, uint32_t offset, uint32_t size,
                                 Access *access) {
    if (!(r->known >> base & 1)) return false;
    *access = (Access){r->value[base] + offset, size};
    return access->address % size != 0;
}

static inline void set_register(Registers *r, uint32_t number, bool known, uint32_t value) {
    if (number == 0) return; /* RISC-V's zero */
    r->known = known ? r->known | 1u << number : r->known & ~(1u << number);
    r->value[number] = value;
}

static inline void add_registers(Registers *r, uint32_t to, uint32_t a, uint32_t b, uint32_t plus) {
    bool known = (r->known >> a & 1) && (r->known >> b & 1);
    set_register(r, to, known, r->value[a] + r->value[b] + plus);
}

/* One RISC-V instruction of 16 bits: true when it accesses misaligned memory. */
static inline bool follow_compressed(Registers *r, uint32_t i, Access *access) {
    uint32_t kind = (i & 3) << 3 | i >> 13, rd = i >> 7 & 31;
    uint32_t low = (i >> 2 & 7) + 8, high = (i >> 7 & 7) + 8;
    uint32_t imm6 = (i >> 12 & 1) << 5 | (i >> 2 & 31);
    switch (kind) {
    case 0: /* c.addi4spn */
        add_registers(r, low, 2, 0, (i >> 7 & 15) << 6 | (i >> 11 & 3) << 4 | (i >> 5 & 1) << 3 |
                                        (i >> 6 & 1) << 2);
        return false;
    case 2: case 3: case 6: case 7: { /* c.lw, c.flw, c.sw, c.fsw */
        uint32_t offset = (i >> 10 & 7) << 3 | (i >> 6 & 1) << 2 | (i >> 5 & 1) << 6;
        if (is_misaligned(r, high, offset, 4, access)) return true;
        if (kind == 2) set_register(r, low, false, 0);
        return false;
    }
    case 8: /* c.addi */
        add_registers(r, rd, rd, 0, (uint32_t)sign_extend(imm6, 6));
        return false;
    case 10: /* c.li */
        set_register(r, rd, true, (uint32_t)sign_extend(imm6, 6));
        return false;
    case 12: /* c.srli and its kin */
        set_register(r, high, false, 0);
        return false;
    case 18: case 19: /* c.lwsp, c.flwsp */
        if (is_misaligned(r, 2, (imm6 & 0x3c) | (imm6 & 3) << 6, 4, access)) return true;
        if (kind == 18) set_register(r, rd, false, 0);
        return false;
    case 22: case 23: /* c.swsp, c.fswsp */
        return is_misaligned(r, 2, (i >> 9 & 15) << 2 | (i >> 7 & 3) << 6, 4, access);
    case 20: /* c.mv, c.add; jumps end the block */
        add_registers(r, rd, i >> 12 & 1 ? rd : 0, i >> 2 & 31, 0);
        return false;
    default:
        set_register(r, rd, false, 0);
        return false;
    }
}

/* One RISC-V instruction: true when it accesses misaligned memory. */
static inline bool follow_riscv(Registers *r, uint32_t pc, uint32_t i, bool wide, Access *access) {
    static const uint8_t sizes[8] = {1, 2, 4, 1, 1, 2, 1, 1};
    if (!wide) return follow_compressed(r, i, access);
    uint32_t rd = i >> 7 & 31, rs1 = i >> 15 & 31, rs2 = i >> 20 & 31, kind = i >> 12 & 7;
    switch (i & 0x7f) {
    case 0x03: /* loads */
        if (is_misaligned(r, rs1, (uint32_t)sign_extend(i >> 20, 12), sizes[kind], access))
            return true;
        set_register(r, rd, false, 0);
        return false;
    case 0x07: /* flw */
        return is_misaligned(r, rs1, (uint32_t)sign_extend(i >> 20, 12), sizes[kind], access);
    case 0x23: case 0x27: /* stores, fsw */
        return is_misaligned(r, rs1, (uint32_t)sign_extend((i >> 25) << 5 | rd, 12), sizes[kind],
                             access);
    case 0x37: /* lui */
        set_register(r, rd, true, i & 0xfffff000);
        return false;
    case 0x17: /* auipc */
        set_register(r, rd, true, pc + (i & 0xfffff000));
        return false;
    case 0x63: case 0x0f: /* branches, fences */
        return false;
    default:
        if ((i & 0x707f) == 0x13) add_registers(r, rd, rs1, 0, (uint32_t)sign_extend(i >> 20, 12));
        else if ((i & 0xfe00707f) == 0x33) add_registers(r, rd, rs1, rs2, 0);
        else set_register(r, rd, false, 0);
        return false;
    }
}

/* A load or store of one word or halfword by a 16-bit instruction (DDI0419 A5.2.4). */
static inline bool follow_single(const Registers *r, uint32_t i, Access *access) {
    uint32_t base = i >> 3 & 7, offset = i >> 6 & 31, high = i >> 6 & 7;
    switch (i >> 12) {
    case 5: {
        static const uint8_t sizes[8] = {4, 2, 1, 1, 4, 2, 1, 2};
        bool known = r->known >> high & 1;
        return known && is_misaligned(r, base, r->value[high], sizes[i >> 9 & 7], access);
    }
    case 6: return is_misaligned(r, base, offset * 4, 4, access);
    case 8: return is_misaligned(r, base, offset * 2, 2, access);
    default: return false; /* bytes, and what is relative to sp and pc */
    }
}

/* One instruction of Arm: LDM, LDRD and VLDR need words; `all`: every access has to be aligned. */
static inline bool follow_thumb(Registers *r, uint32_t i, bool wide, bool all, Access *access) {
    if (!wide) {
        if (all && follow_single(r, i, access)) return true;
        /* ldm, stm; push and pop: the sp is aligned always */
        if (i >> 12 == 0xc && is_misaligned(r, i >> 8 & 7, 0, 4, access)) return true;
        /* every register that a 16-bit instruction may write */
        uint32_t written = 1u << (i & 7) | 1u << (i >> 8 & 7) | 1u << ((i & 7) | (i >> 4 & 8));
        if (i >> 12 == 0xc || i >> 9 == 0x5e) written |= i & 0xff;
        r->known &= ~(written | 1u << 13 | 1u << 14);
        return false;
    }
    uint32_t base = i >> 16 & 15, list = 0;
    bool multiple = (i & 0xfe400000) == 0xe8000000;
    bool pair = (i & 0xfe400000) == 0xe8400000 && (i & 0x01200000);
    bool single = (i & 0xff200e00) == 0xed000a00;
    /* vldm, vstm; the rest of their group moves between registers */
    bool vector = (i & 0xff800e00) == 0xec800a00 || (i & 0xffa00e00) == 0xed200a00;
    if (base != 15 && (multiple || pair || single || vector)) {
        uint32_t size = (i & 0xff) * 4, offset = 0;
        if (pair || single)
            offset = i >> 24 & 1 ? (i >> 23 & 1 ? size : 0u - size) : 0;
        if (is_misaligned(r, base, offset, 4, access)) return true;
    }
    if (multiple) list = i & 0xffff;
    r->known &= ~(list | 1u << (i >> 8 & 15) | 1u << (i >> 12 & 15) | 1u << base);
    return false;
}

#endif
