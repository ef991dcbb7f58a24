/* Registers, flags, operators and conditions of Arm's M profile. */
#ifndef COVP_BITS_ARM_H
#define COVP_BITS_ARM_H

#include "tracked.h"

/* Operators as 32-bit instructions number them; MOVE and NOT_MOVE share numbers with ORR and ORN. */
enum { DO_AND, DO_BIC, DO_ORR, DO_ORN, DO_EOR, DO_ADD = 8, DO_ADC = 10, DO_SBC, DO_SUB = 13, DO_RSB };

static Bits arm(const Tracked *t, uint32_t number) {
    return number == PC ? known((t->pc & ~3u) + 4) : low_word(t->r[number]);
}

static void set_arm(Tracked *t, uint32_t number, Bits value) {
    Bits word = low_word(value);
    if (number != PC) t->r[number] = word;
    else t->jumps = true, decide(t, DECIDES_BRANCH, word);
}

static Bits flag(const Tracked *t, uint32_t which) { return part(t->flags, which, 1, false); }

static void set_flag(Tracked *t, uint32_t which, Bits value) {
    t->flags = inserted(t->flags, value, which, 1);
}

/* N and Z of a result, C of its bit 32. */
static void set_nzc(Tracked *t, Bits result) {
    set_flag(t, FLAG_N, part(result, 31, 1, false));
    set_flag(t, FLAG_Z, is_equal(low_word(result), known(0)));
    set_flag(t, FLAG_C, part(result, 32, 1, false));
    t->compares = false;
}

/* Without the flags that a word is to leave as they are: bit 32 is C. */
static Bits with_carry(const Tracked *t, Bits word) {
    return inserted(low_word(word), flag(t, FLAG_C), 32, 1);
}

/* Writes a saturated result's Q. */
static void set_q_of(Tracked *t, Bits whole, int64_t low, int64_t high) {
    set_flag(t, FLAG_Q, bits_or(flag(t, FLAG_Q), exceeds(whole, low, high)));
}

static void add_arm(Tracked *t, uint32_t to, Bits a, Bits b, Bits carry, bool sets_flags) {
    Bits result = sum3(low_word(a), low_word(b), carry);
    if (sets_flags) {
        Bits whole = signed_sum3(a, b, carry, 32);
        set_nzc(t, result);
        set_flag(t, FLAG_V, exceeds(whole, INT32_MIN, INT32_MAX));
    }
    if (to < PC) set_arm(t, to, result);
}

static void subtract_arm(Tracked *t, uint32_t to, Bits a, Bits b, bool sets_flags) {
    add_arm(t, to, a, bits_not(b), known(1), sets_flags);
    if (!sets_flags) return;
    t->left = low_word(a);
    t->right = low_word(b);
    t->compares = true;
    set_flag(t, FLAG_Z, is_equal(t->left, t->right));
}

/* to = a op b; bit 32 of b is the carry of its shift. `to` = PC: only flags are wanted. */
static void operate(Tracked *t, uint32_t op, uint32_t to, Bits a, Bits b, bool sets_flags) {
    Bits word = low_word(b), result;
    switch (op) {
    case DO_AND: result = bits_and(a, word); break;
    case DO_BIC: result = bits_and(a, bits_not(word)); break;
    case DO_ORR: result = bits_or(a, word); break;
    case DO_ORN: result = bits_or(a, low_word(bits_not(word))); break;
    case DO_EOR: result = bits_xor(a, word); break;
    case DO_ADD: add_arm(t, to, a, word, known(0), sets_flags); return;
    case DO_ADC: add_arm(t, to, a, word, flag(t, FLAG_C), sets_flags); return;
    case DO_SBC: add_arm(t, to, a, bits_not(word), flag(t, FLAG_C), sets_flags); return;
    case DO_SUB: subtract_arm(t, to, a, word, sets_flags); return;
    case DO_RSB: subtract_arm(t, to, word, a, sets_flags); return;
    default: t->forgets = true; return;
    }
    if (sets_flags) set_nzc(t, inserted(low_word(result), part(b, 32, 1, false), 32, 1));
    if (to < PC) set_arm(t, to, result);
}

/* -- conditions -------------------------------------------------------------------------------------- */

static bool passes(uint32_t condition, uint32_t nzcv) {
    bool n = nzcv >> 3 & 1, z = nzcv >> 2 & 1, c = nzcv >> 1 & 1, v = nzcv & 1, result = true;
    switch (condition >> 1) {
    case 0: result = z; break;
    case 1: result = c; break;
    case 2: result = n; break;
    case 3: result = v; break;
    case 4: result = c && !z; break;
    case 5: result = n == v; break;
    case 6: result = n == v && !z; break;
    default: return true;
    }
    return result != (condition & 1);
}

/* After a comparison; of flags alone it would not be known that N and V belong together. */
static Bits compared(const Tracked *t, uint32_t condition) {
    Bits result;
    switch (condition >> 1) {
    case 0: result = is_equal(t->left, t->right); break;
    case 1: result = negated(is_below(t->left, t->right)); break;
    case 4: result = is_below(t->right, t->left); break;
    case 5: result = negated(is_less(t->left, t->right)); break;
    default: result = is_less(t->right, t->left); break;
    }
    return condition & 1 ? negated(result) : result;
}

/* 0 or 1 */
static Bits condition_of(const Tracked *t, uint32_t condition) {
    Bits nzcv = part(t->flags, FLAG_V, 4, false);
    bool value = passes(condition, (uint32_t)nzcv.value), differs = false;
    if (!nzcv.undefined) return known(value);
    uint32_t kind = condition >> 1;
    if (t->compares && kind != 2 && kind != 3 && kind != 7) return compared(t, condition);
    for (uint32_t flags = 0; flags < 16; flags++)
        if (!((flags ^ nzcv.value) & ~nzcv.undefined)) differs |= passes(condition, flags) != value;
    return made(value, differs, nzcv, nzcv);
}

static Bits saturate(Tracked *t, Bits whole, int64_t low, int64_t high) {
    set_q_of(t, whole, low, high);
    return saturated(whole, low, high);
}

#endif
