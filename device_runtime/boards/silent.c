/* A board without a serial port. */
#include "board.h"
#include "cycles.h"

void board_init(void)
{
    cycles_start();
}

#ifdef BOARD_OUTPUT_SERIAL

void board_write(const char *text, size_t bytes)
{
    (void)text;
    (void)bytes;
}

int board_read(void)
{
    return -1;
}

#endif
