/* From reset to main of a standalone program. Symbols: standalone.ld. */
#include <stdint.h>
#include <string.h>

#include "workspace.h"

extern uint8_t covp_data_start[], covp_data_end[], covp_data_load[];
extern uint8_t covp_bss_start[], covp_bss_end[];
extern uint8_t covp_workspace_start[], covp_workspace_end[];

int main(void);
void covp_start(void);

volatile int covp_exit_status;

/* Where a finished program stays; a debugger or emulator stops here. */
__attribute__((noinline, noreturn)) void covp_exit(void)
{
    for (;;)
        __asm__ volatile("");
}

void covp_start(void)
{
    memcpy(covp_data_start, covp_data_load, (size_t)(covp_data_end - covp_data_start));
    memset(covp_bss_start, 0, (size_t)(covp_bss_end - covp_bss_start));
    covp_workspace_reset(covp_workspace_start,
                         (uint32_t)(covp_workspace_end - covp_workspace_start));
    covp_exit_status = main();
    covp_exit();
}
