/* A board with covp's own serial port (peripherals/uart.py) at BOARD_UART, and nothing to set up. */
#include "board.h"
#include "board_config.h"
#include "cycles.h"

#define UART_TX (((volatile uint32_t *)BOARD_UART)[0])
#define UART_RX (((volatile uint32_t *)BOARD_UART)[1])
#define UART_STATUS (((volatile uint32_t *)BOARD_UART)[2])
#define UART_TX_READY 1u
#define UART_RX_READY 2u

void board_init(void)
{
    cycles_start();
}

#ifdef BOARD_OUTPUT_SERIAL

void board_write(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        while (!(UART_STATUS & UART_TX_READY))
            ;
        UART_TX = (uint8_t)text[i];
    }
}

int board_read(void)
{
    return UART_STATUS & UART_RX_READY ? (int)UART_RX : -1;
}

#endif
