/* The registers of a core as numbers of which some bits are undefined, and what an instruction does to them.
 *
 * Values are computed along with what is undefined of them, as masks decide what stays so. What is not
 * computed here (coprocessors, vectors) is right again at the next block.
 */
#ifndef COVP_TRACKED_H
#define COVP_TRACKED_H

#include "bits.h"
#include "counter_state.h"

/* FLOAT: number of the first floating-point register; Arm's are the single ones. */
enum { FLOAT = 32, REGISTERS = 64 };
enum { SP = 13, LR = 14, PC = 15 }; /* of Arm */
enum { NOWHERE_TO = 16 }; /* data of a load that is used at once, as an offset to jump to: Arm's r16 */
#define R(N) (1ull << (N))

/* What undefined bits decide. Mirrored in memory_states.py. */
enum { DECIDES_NOTHING, DECIDES_BRANCH, DECIDES_ADDRESS, DECIDES_RESULT, DECIDES_OUTPUT };

/* An instruction's loads or stores. */
typedef struct {
    bool is_any, loads, is_signed;
    uint64_t data;     /* the registers, in the order of addresses */
    uint8_t swapped;   /* of a pair in the other order, the register of the lower address plus 1; else 0 */
    uint32_t bytes;    /* of all of them */
} Accesses;

/* Flags lie as in Arm's APSR. `compares`: they are those of left - right. */
typedef struct {
    Bits r[REGISTERS];
    Bits flags, fpscr;
    Bits left, right;
    bool compares;
    bool forgets;      /* the instruction is not known: it may have written anything */
    bool jumps;        /* the instruction goes elsewhere */
    uint8_t it;        /* Arm's ITSTATE before the next instruction */
    uint32_t pc;       /* of the instruction */
    Accesses accesses;
    uint32_t decides;  /* what is decided by ... */
    Bits decisive;     /* ... these undefined bits */
} Tracked;

/* What an instruction does to the registers: tracks.c. */
__attribute__((visibility("hidden"))) void track_thumb(Tracked *t, Instruction i);
__attribute__((visibility("hidden"))) void track_riscv(Tracked *t, Instruction i);

enum { FLAG_N = 31, FLAG_Z = 30, FLAG_C = 29, FLAG_V = 28, FLAG_Q = 27, FLAG_GE = 16 };

static void decide(Tracked *t, uint32_t what, Bits by) {
    if (!by.undefined || t->decides) return;
    t->decides = what;
    t->decisive = by;
}

static bool has_undefined(const Tracked *t) {
    uint64_t any = t->flags.undefined | t->fpscr.undefined;
    for (int n = 0; n < REGISTERS; n++) any |= t->r[n].undefined;
    return any;
}

/* Nothing is undefined any more. */
static void define_all(Tracked *t) {
    for (int n = 0; n < REGISTERS; n++) t->r[n].undefined = 0;
    t->flags.undefined = t->fpscr.undefined = 0;
    t->compares = false;
}

/* The instruction accesses memory from an address on. */
static void access_memory(Tracked *t, bool loads, uint64_t data, uint32_t bytes, Bits address,
                          bool is_signed) {
    decide(t, DECIDES_ADDRESS, low_word(address));
    t->accesses = (Accesses){.is_any = true, .loads = loads, .is_signed = is_signed, .data = data,
                             .bytes = bytes};
}

static void access_words(Tracked *t, bool loads, uint64_t data, Bits address) {
    access_memory(t, loads, data, 4 * one_bits(data), address, false);
}

/* The register of an access, `done` bytes after the first. */
static uint32_t accessed_register(const Accesses *a, uint32_t done) {
    uint64_t rest = a->data;
    if (a->swapped && !done) return a->swapped - 1u;
    if (a->swapped) return (uint32_t)__builtin_ctzll(rest & ~R(a->swapped - 1u));
    while (done >= 4 && rest & (rest - 1)) rest &= rest - 1, done -= 4;
    return (uint32_t)__builtin_ctzll(rest);
}

/* -- arithmetic with floating point ------------------------------------------------------------------ */

static float float_of(Bits a) {
    uint32_t word = (uint32_t)a.value;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* A float that is computed of others. */
static Bits float_from(float value, Bits a, Bits b) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return any_of(word, 0xffffffff, a, b);
}

/* An integer that a float is converted to: towards zero, or the nearest that there is. */
static Bits integer_from(float value, bool is_signed, uint32_t of_nan, Bits a) {
    double low = is_signed ? INT32_MIN : 0, high = is_signed ? INT32_MAX : UINT32_MAX;
    double nearest = value < low ? low : value > high ? high : (double)value;
    return any_of(value == value ? (uint64_t)(int64_t)nearest : of_nan, 0xffffffff, a, a);
}

#endif
