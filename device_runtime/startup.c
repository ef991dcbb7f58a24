/* From reset to main of a standalone program. Symbols: standalone.ld. */
#include <stdint.h>
#include <string.h>

#include "workspace.h"

extern uint8_t covp_data_start[], covp_data_end[], covp_data_load[];
extern uint8_t covp_bss_start[], covp_bss_end[];
extern uint8_t covp_workspace_start[], covp_workspace_end[];

int main(void);
void covp_start(void);
void board_start_memory(void);

volatile int covp_exit_status;

/* Where a finished program stays; a debugger or emulator stops here. */
__attribute__((noinline, noreturn)) void covp_exit(void)
{
    for (;;)
        __asm__ volatile("");
}

/* The linker's symbols are no parts of one object, so it is not the pointers that are subtracted. */
static size_t bytes_between(const uint8_t *start, const uint8_t *end)
{
    return (size_t)((uintptr_t)end - (uintptr_t)start);
}

/* What RAM needs before it can be written, replaced by board support. */
__attribute__((weak)) void board_start_memory(void)
{
}

void covp_start(void)
{
    board_start_memory();
    memcpy(covp_data_start, covp_data_load, bytes_between(covp_data_start, covp_data_end));
    memset(covp_bss_start, 0, bytes_between(covp_bss_start, covp_bss_end));
    covp_workspace_reset(covp_workspace_start,
                         (uint32_t)bytes_between(covp_workspace_start, covp_workspace_end));
    covp_exit_status = main();
    covp_exit();
}
