/* Custom instructions: executed by a function of the host.
 *
 * The emulator knows no instructions but its own. One that is about to be executed is replaced in
 * memory by a branch that is never taken, "bltu x0, x0", whose offset is a number: it ends the
 * translated block, and on_block calls the function when the next block begins, where the emulated
 * registers are up to date. What counts and what is shown are the bits that the number stands for.
 *
 * Ending a block is what costs most. Of several in a row those that have another one after them and
 * write no register become "addi x0, x0, number", which does nothing: on_block executes all that
 * the block ended with, in order; none of them changes what the others read.
 *
 * A program's own such branches and additions would be taken for custom instructions; no compiler
 * writes them.
 */
#ifndef COVP_CUSTOM_H
#define COVP_CUSTOM_H

#include <stdbool.h>
#include <stdint.h>

#include "../../hardware/instruction_state.h"

typedef uint32_t (*CustomFunction)(uint32_t a, uint32_t b, CfuState *state);

typedef struct {
    uint64_t uses;
    CustomFunction function; /* NULL: the instruction is gone */
    CfuState *state;
    uint32_t bits;
    uint16_t cycles;
    uint8_t rd, rs1, rs2; /* out of bits */
} Custom;

enum { PATCH_MASK = 0x01fff07f, PATCH = 0x00006063, PATCH_NUMBERS = 1 << 12 };
enum { QUIET_MASK = 0x000fffff, QUIET = 0x00000013 };

static inline uint32_t patch_of(uint32_t number) {
    return PATCH | (number & 31) << 7 | (number >> 5) << 25;
}

static inline uint32_t quiet_of(uint32_t number) { return QUIET | number << 20; }

/* The number in an instruction; 0: it is no patch. */
static inline uint32_t patch_number(uint32_t bits) {
    if ((bits & QUIET_MASK) == QUIET) return bits >> 20;
    return (bits & PATCH_MASK) == PATCH ? bits >> 25 << 5 | (bits >> 7 & 31) : 0;
}

#endif
