/* QEMU's machine virt: a 16550 UART (TI PC16550D, chapter 8) of byte registers, nothing to clock. */
#include "board.h"
#include "board_config.h"
#include "cycles.h"

#ifdef BOARD_OUTPUT_SERIAL

#define UART_HZ 3686400u
#define BAUD 115200u

#define UART ((volatile uint8_t *)BOARD_UART)
enum { DATA, IER, FCR, LCR, MCR, LSR, DIVISOR_LOW = 0, DIVISOR_HIGH = 1 };

static void start_serial(void)
{
    UART[IER] = 0;
    UART[LCR] = 0x80; /* DLAB */
    UART[DIVISOR_LOW] = UART_HZ / (16u * BAUD);
    UART[DIVISOR_HIGH] = 0;
    UART[LCR] = 3; /* 8 bits */
    UART[FCR] = 7; /* FIFOs, empty */
}

void board_write(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        while (!(UART[LSR] & 0x20)) /* room */
            ;
        UART[DATA] = (uint8_t)text[i];
    }
}

int board_read(void)
{
    return UART[LSR] & 1 ? UART[DATA] : -1;
}

#endif

void board_init(void)
{
#ifdef BOARD_OUTPUT_SERIAL
    start_serial();
#endif
    cycles_start();
}
