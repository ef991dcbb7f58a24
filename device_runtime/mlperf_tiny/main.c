/* MLPerf-Tiny-style firmware: boots, says so, and executes the host's commands. */
#include <stddef.h>

#include "board.h"
#include "commands.h"
#include "tiny_benchmark.h"

const protocol_command *const protocol_tables[] = {monitor_commands, inference_commands, NULL};

void protocol_idle(void)
{
}

int main(void)
{
    board_init();
    bool works = tiny_start();
    reply("m-timestamp-mode-" TINY_TIMESTAMP_MODE);
    reply_end();
    reply_timestamp();
    if (!works)
        reply_error("The model does not start");
    reply("m-init-done");
    reply_end();
    reply("m-ready");
    reply_end();
    protocol_serve();
    return 0;
}
