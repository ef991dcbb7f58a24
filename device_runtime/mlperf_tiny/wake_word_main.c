/* MLPerf-Tiny-style firmware of the streaming wake word. */
#include <stddef.h>

#include "board.h"
#include "commands.h"
#include "wake_word.h"

const protocol_command *const protocol_tables[] = {monitor_commands, wake_word_commands, NULL};

void protocol_idle(void)
{
    wake_word_work();
}

int main(void)
{
    board_init();
    io_init();
    reply("m-init-done");
    reply_end();
    reply("m-ready");
    reply_end();
    protocol_serve();
    return 0;
}
