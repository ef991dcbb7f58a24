/* Runs the queue: called by covp_enter with an empty stack. */
#include <stddef.h>

#include "task.h"
#include "task_layout.h"
#include "workspace.h"

_Static_assert(offsetof(struct covp_task, function) == TASK_FUNCTION, "layout");
_Static_assert(offsetof(struct covp_task, codes) == TASK_CODES, "layout");
_Static_assert(offsetof(struct covp_task, result) == TASK_RESULT, "layout");
_Static_assert(offsetof(struct covp_task, words) == TASK_WORDS, "layout");
_Static_assert(offsetof(struct covp_task, floats) == TASK_FLOATS, "layout");
_Static_assert(sizeof(struct covp_task) == TASK_FLOATS + 4 * COVP_FLOATS, "layout");
_Static_assert(offsetof(struct covp_queue, trap) == QUEUE_TRAP, "layout");
_Static_assert(offsetof(struct covp_queue, single) == QUEUE_TRAP + 4 * COVP_TRAP_WORDS, "layout");

volatile struct covp_queue covp_queue;

void covp_run_tasks(void)
{
    uint32_t count = covp_queue.count;
    for (uint32_t i = 0; i < count; ++i) {
        covp_workspace_reset(covp_queue.workspace, covp_queue.workspace_bytes);
        covp_call(&covp_queue.tasks[i]);
        covp_queue.completed = i + 1;
    }
}
