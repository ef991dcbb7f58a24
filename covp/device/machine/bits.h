/* Numbers of which some bits are undefined, and operators on them.
 *
 * A bit of a result is undefined when other values of the operands' undefined bits can change it. AND, OR,
 * XOR, sums, differences, shifts, comparisons and choices are exact where the operands have nothing to do
 * with each other: sums after J. Seward, N. Nethercote, "Using Valgrind to Detect Undefined Value Errors with
 * Bit-Precision", USENIX 2005, section 2.5. The others may call a bit undefined that is not, never the
 * opposite.
 */
#ifndef COVP_BITS_H
#define COVP_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Undefined bits have a value as well: the one that the emulator computes with. */
typedef struct {
    uint64_t value, undefined;
    uint32_t origin; /* address of the memory that was never written, which the undefined bits are from */
    uint32_t pc;     /* of the instruction that loaded them, ... */
    bool computed;   /* ... before anything was computed of them: until then they are copies */
} Bits;

static Bits known(uint64_t value) { return (Bits){.value = value}; }

/* Made of others: its undefined bits are from the one that has some, of two from the lower address. */
static Bits made(uint64_t value, uint64_t undefined, Bits a, Bits b) {
    Bits from = a.undefined && (!b.undefined || a.origin <= b.origin) ? a : b;
    return (Bits){value, undefined, from.origin, from.pc, from.computed};
}

static Bits computed(Bits a) {
    a.computed = true;
    return a;
}

static uint64_t least(Bits a) { return a.value & ~a.undefined; }
static uint64_t most(Bits a) { return a.value | a.undefined; }

static Bits bits_and(Bits a, Bits b) {
    return made(a.value & b.value, (a.undefined & most(b)) | (b.undefined & most(a)), a, b);
}

static Bits bits_or(Bits a, Bits b) {
    return made(a.value | b.value, (a.undefined & ~least(b)) | (b.undefined & ~least(a)), a, b);
}

static Bits bits_xor(Bits a, Bits b) {
    return made(a.value ^ b.value, a.undefined | b.undefined, a, b);
}

static Bits bits_not(Bits a) { return bits_xor(a, known(~0ull)); }

static Bits masked(Bits a, uint64_t mask) { return bits_and(a, known(mask)); }

static Bits low_word(Bits a) { return masked(a, 0xffffffff); }

static Bits left(Bits a, uint32_t by) {
    return by > 63 ? known(0) : made(a.value << by, a.undefined << by, a, a);
}

static Bits right(Bits a, uint32_t by) {
    return by > 63 ? known(0) : made(a.value >> by, a.undefined >> by, a, a);
}

/* The sign of the lowest `bits` fills the upper ones. */
static Bits sign_extended(Bits a, uint32_t bits) {
    uint32_t up = 64 - bits;
    return made((uint64_t)((int64_t)(a.value << up) >> up), (uint64_t)((int64_t)(a.undefined << up) >> up),
                a, a);
}

/* `bits` bits from `low` on. */
static Bits part(Bits a, uint32_t low, uint32_t bits, bool is_signed) {
    Bits rest = right(a, low);
    return is_signed ? sign_extended(rest, bits) : masked(rest, (1ull << bits) - 1);
}

/* `to`, whose bits from `low` on are the lowest of `from`. */
static Bits inserted(Bits to, Bits from, uint32_t low, uint32_t bits) {
    uint64_t mask = ((1ull << bits) - 1) << low;
    return bits_or(masked(to, ~mask), masked(left(from, low), mask));
}

/* Some bits are swapped about by a function. */
static Bits moved(Bits a, uint32_t (*to)(uint32_t)) {
    return made(to((uint32_t)a.value), to((uint32_t)a.undefined), a, a);
}

/* a + b + c, where c is 0 or 1. A carry grows with its operands: it is undefined where it differs between
 * the least sum and the greatest.
 */
static Bits sum3(Bits a, Bits b, Bits c) {
    uint64_t differs = (least(a) + least(b) + least(c)) ^ (most(a) + most(b) + most(c));
    Bits from = made(0, a.undefined | b.undefined, a, b);
    Bits result = made(a.value + b.value + c.value, differs | a.undefined | b.undefined, from, c);
    uint64_t changed = ((result.value ^ a.value) & a.undefined) | ((result.value ^ b.value) & b.undefined);
    return changed ? computed(result) : result; /* else it joins bit-fields, as OR would */
}

static Bits sum(Bits a, Bits b) { return sum3(a, b, known(0)); }
static Bits difference(Bits a, Bits b) { return sum3(a, bits_not(b), known(1)); }

/* The same of numbers of some bits with signs, which reach `bits` + 1 bits. They are added as numbers without
 * signs, each half of all values greater: copies of a sign that is undefined have to do with each other.
 */
static Bits signed_sum3(Bits a, Bits b, Bits c, uint32_t bits) {
    uint64_t mask = (1ull << bits) - 1, half = 1ull << (bits - 1);
    Bits x = bits_xor(masked(a, mask), known(half)), y = bits_xor(masked(b, mask), known(half));
    return sign_extended(bits_xor(sum3(x, y, c), known(1ull << bits)), bits + 1);
}

/* A value between two, as far as is known: undefined from the highest bit on in which these differ. */
static Bits between(uint64_t value, uint64_t low, uint64_t high, Bits from) {
    uint64_t differ = low ^ high;
    return made(value, differ ? ~0ull >> __builtin_clzll(differ) : 0, from, from);
}

/* Of anything that is computed of both: no bit is known if one of theirs is not. */
static Bits any_of(uint64_t value, uint64_t mask, Bits a, Bits b) {
    return computed(made(value & mask, a.undefined | b.undefined ? mask : 0, a, b));
}

static bool is_one_bit(Bits a) { return !a.undefined && a.value && !(a.value & (a.value - 1)); }

/* The product. What is below the lowest bit that can differ is known. */
static Bits product(Bits a, Bits b) {
    uint64_t value = a.value * b.value, from = 0;
    if (!(a.undefined | b.undefined)) return known(value);
    if (is_one_bit(b)) return left(a, (uint32_t)__builtin_ctzll(b.value));
    if (is_one_bit(a)) return left(b, (uint32_t)__builtin_ctzll(a.value));
    if (a.undefined && most(b)) from |= (a.undefined & -a.undefined) * (most(b) & -most(b));
    if (b.undefined && most(a)) from |= (b.undefined & -b.undefined) * (most(a) & -most(a));
    return computed(made(value, from ? -(from & -from) : 0, a, b));
}

/* -- comparisons: 0 or 1 --------------------------------------------------------------------------- */

static Bits truth(bool value, bool may_be, bool may_not_be, Bits a, Bits b) {
    return made(value, may_be && may_not_be, a, b);
}

static Bits is_equal(Bits a, Bits b) {
    uint64_t undefined = a.undefined | b.undefined, differ = a.value ^ b.value;
    return truth(!differ, !(differ & ~undefined), differ || undefined, a, b);
}

static Bits is_below(Bits a, Bits b) {
    return truth(a.value < b.value, least(a) < most(b), most(a) >= least(b), a, b);
}

/* Of words with signs. */
static Bits is_less(Bits a, Bits b) {
    Bits sign = known(0x80000000);
    return is_below(bits_xor(low_word(a), sign), bits_xor(low_word(b), sign));
}

static Bits negated(Bits condition) { return bits_xor(condition, known(1)); }

static Bits chosen(Bits condition, Bits yes, Bits no) {
    Bits one = condition.value & 1 ? yes : no;
    if (!(condition.undefined & 1)) return one;
    uint64_t undefined = yes.undefined | no.undefined | (yes.value ^ no.value);
    return made(one.value, undefined, condition, condition);
}

/* -- of numbers with signs -------------------------------------------------------------------------- */

static const uint64_t SIGN = 1ull << 63;

static int64_t signed_least(Bits a) {
    return (int64_t)((a.value & ~(a.undefined & ~SIGN)) | (a.undefined & SIGN));
}

static int64_t signed_most(Bits a) {
    return (int64_t)((a.value | (a.undefined & ~SIGN)) & ~(a.undefined & SIGN));
}

static int64_t number_of(Bits word, bool is_signed) {
    return is_signed ? (int32_t)word.value : (int64_t)word.value;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* Whether it lies outside: 0 or 1. */
static Bits exceeds(Bits a, int64_t low, int64_t high) {
    int64_t value = (int64_t)a.value, least = signed_least(a), most = signed_most(a);
    return truth(value < low || value > high, least < low || most > high, least <= high && most >= low, a, a);
}

static Bits saturated(Bits a, int64_t low, int64_t high) {
    int64_t least = signed_least(a), most = signed_most(a);
    if (least >= low && most <= high) return a;
    uint64_t value = (uint64_t)clamp((int64_t)a.value, low, high);
    return between(value, (uint64_t)clamp(least, low, high), (uint64_t)clamp(most, low, high), a);
}

/* -- shifts ------------------------------------------------------------------------------------------ */

enum { SHIFT_LEFT, SHIFT_RIGHT, SHIFT_SIGNED, SHIFT_ROUND };

/* A word; bit 32 is the last bit that was shifted out, and of no shift that of `a`. */
static Bits shifted(uint32_t type, Bits a, uint32_t by) {
    Bits word = low_word(a);
    if (!by) return a;
    if (type == SHIFT_LEFT) return masked(left(word, by), 0x1ffffffff);
    if (type == SHIFT_ROUND) {
        uint32_t turn = by & 31;
        Bits turned = turn ? low_word(bits_or(right(word, turn), left(word, 32 - turn))) : word;
        return inserted(turned, right(turned, 31), 32, 1);
    }
    if (type == SHIFT_SIGNED) word = sign_extended(word, 32);
    if (by > 32 && type == SHIFT_SIGNED) by = 32;
    return inserted(low_word(right(word, by)), right(word, by - 1), 32, 1);
}

/* The same by a number of bits that may be undefined: all that it can be. */
static Bits shifted_by(uint32_t type, Bits a, Bits by, uint32_t mask) {
    Bits result = shifted(type, a, (uint32_t)by.value & mask);
    uint32_t unknown = (uint32_t)by.undefined & mask, some = 0;
    if (!unknown) return result;
    uint64_t undefined = 0;
    do {
        Bits other = shifted(type, a, ((uint32_t)least(by) & mask) | some);
        undefined |= other.undefined | (other.value ^ result.value);
        some = (some - unknown) & unknown;
    } while (some);
    return made(result.value, undefined, a, by);
}

/* -- zeros, ones and places ------------------------------------------------------------------------- */

static uint32_t leading_zeros(uint64_t word) {
    return (uint32_t)word ? (uint32_t)__builtin_clz((uint32_t)word) : 32;
}

static uint32_t one_bits(uint64_t word) { return (uint32_t)__builtin_popcountll(word); }

static Bits counted(Bits a, uint32_t (*count)(uint64_t)) {
    return between(count(a.value), count(least(a)), count(most(a)), a);
}

static uint32_t swap_bytes(uint32_t a) { return __builtin_bswap32(a); }
static uint32_t swap_halves(uint32_t a) { return (a & 0x00ff00ff) << 8 | (a >> 8 & 0x00ff00ff); }

static uint32_t swap_bits(uint32_t a) {
    uint32_t turned = 0;
    for (int n = 0; n < 32; n++) turned |= (a >> n & 1) << (31 - n);
    return turned;
}

#endif
