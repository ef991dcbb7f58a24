/* What firmware needs of a board. One file a family implements it; board_config.h is generated. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

#include "board_config.h"

/* What RAM needs before it can be written, such as a clock; by default nothing (startup.c). */
void board_start_memory(void);

/* Clock, wait states, caches, serial port and cycle counter. */
void board_init(void);

/* Send bytes over the serial port; returns when the last one is in the transmitter. */
void board_write(const char *text, size_t bytes);

/* The next byte that was received, or -1. */
int board_read(void);

/* Core cycles since board_init. A counter of 32 bits is extended: call it at least once in 2**32
   cycles, and not from interrupt handlers. */
uint64_t board_cycles(void);

/* Time since board_init. */
uint64_t board_microseconds(void);

/* The program is over: by semihosting its host is told the status, and ends. Else it returns. */
void board_exit(int status);

/* With one of these defined, text goes to a debugger instead of the serial port (output.c):
   BOARD_OUTPUT_SEMIHOSTING   by calls; board_read waits for a key
   BOARD_OUTPUT_RTT           by SEGGER's Real-Time Transfer; text that finds no room is lost */
#if !defined(BOARD_OUTPUT_SEMIHOSTING) && !defined(BOARD_OUTPUT_RTT)
#define BOARD_OUTPUT_SERIAL
#endif

#endif
