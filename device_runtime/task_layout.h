/* Offsets in struct covp_task and struct covp_queue, for assembly; task_runner.c checks them. */
#ifndef COVP_TASK_LAYOUT_H
#define COVP_TASK_LAYOUT_H

#define TASK_FUNCTION 0
#define TASK_CODES 4
#define TASK_RESULT 8
#define TASK_WORDS 16
#define TASK_FLOATS 64
#define QUEUE_TRAP 20

#define TASK_CODES_WIDE 8 /* x86: bit 8 + i says that words i and i + 1 are one argument */

#endif
