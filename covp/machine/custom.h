/* Custom instructions: carried out by a function of the host.
 *
 * The emulator knows no instructions but its own. One that is about to be executed is replaced in
 * memory by a branch that is never taken, "bltu x0, x0", whose offset is a number: it ends the
 * translated block, and on_block calls the function when the next block begins, where the emulated
 * registers are up to date. What counts and what is shown are the bits behind the number. A program's
 * own "bltu x0, x0" with such an offset would be taken for one; no compiler writes branches that are
 * never taken.
 */
#ifndef COVP_CUSTOM_H
#define COVP_CUSTOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct CfuState CfuState;
typedef uint32_t (*CustomFunction)(uint32_t a, uint32_t b, CfuState *state);

typedef struct {
    uint64_t uses;
    CustomFunction function; /* NULL: the instruction is gone */
    CfuState *state;
    uint32_t bits;
} Custom;

enum { PATCH_MASK = 0x01fff07f, PATCH = 0x00006063, PATCH_NUMBERS = 1 << 12 };

static inline uint32_t patch_of(uint32_t number) {
    return PATCH | (number & 31) << 7 | (number >> 5) << 25;
}

/* The number in an instruction; 0: it is no patch. */
static inline uint32_t patch_number(uint32_t bits) {
    return (bits & PATCH_MASK) == PATCH ? bits >> 25 << 5 | (bits >> 7 & 31) : 0;
}

#endif
