/* What the functions of custom instructions, and units in simulation, share with the core. */
#ifndef COVP_INSTRUCTION_STATE_H
#define COVP_INSTRUCTION_STATE_H

#include <stdint.h>

typedef struct CfuState {
    uint32_t word[16]; /* the unit's own; zero after a reset */
    uint64_t now;      /* cycles of the core so far, as it calls */
    int64_t late;      /* cycles that the call takes beyond those that the instruction states */
    void *unit;        /* the one behind the functions, where it is more than words */
} CfuState;

/* A cycle of the port of a unit that is simulated beside a core. */
typedef struct CfuCycle {
    uint32_t reset, valid, number, a, b, takes; /* of the core */
    uint32_t ready, answers, answer;            /* of the unit */
} CfuCycle;

#endif
