/* The task queue: the host writes it into memory, then lets the core run from covp_enter to covp_done. */
#ifndef COVP_TASK_H
#define COVP_TASK_H

#include <stdint.h>

#define COVP_WORDS 12
#define COVP_FLOATS 8
#define COVP_TRAP_WORDS 6

#define COVP_TASK_RESULT_FLOAT 1u /* the result is in the floating-point register */

/* One call. Its arguments are laid out by the host: words[0..] fill the argument registers, then
 * the stack; floats[] fill the floating-point argument registers of cores that pass them there. */
struct covp_task {
    uint32_t function;
    uint32_t codes;     /* COVP_TASK_..., and TASK_CODES_WIDE of task_layout.h */
    uint32_t result[2]; /* what the function returned, low word first */
    uint32_t words[COVP_WORDS];
    float floats[COVP_FLOATS];
};

struct covp_queue {
    struct covp_task *tasks;
    uint32_t count;
    uint32_t completed;
    uint8_t *workspace; /* free memory that tasks may use */
    uint32_t workspace_bytes;
    uint32_t trap[COVP_TRAP_WORDS]; /* what ended the run early, zero if nothing did (enter_*.S) */
    struct covp_task single;        /* where a task lies that comes alone: one transfer with this */
};

extern volatile struct covp_queue covp_queue;

/* Calls one task's function and stores its result (enter_*.S). */
void covp_call(struct covp_task *task);

void covp_run_tasks(void);

#endif
