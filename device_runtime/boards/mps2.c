/* Arm's MPS2 and MPS3 boards, and QEMU's: the UART of the CMSDK (Arm DDI0479 4.3). The clock is the
 * FPGA image's; BOARD_UART_HZ is the UART's where it is another one. */
#include "board.h"
#include "board_config.h"
#include "cycles.h"

#ifdef BOARD_OUTPUT_SERIAL

#ifndef BOARD_UART_HZ
#define BOARD_UART_HZ BOARD_CLOCK_HZ
#endif
#define BAUD 115200u

#define UART_DATA (((volatile uint32_t *)BOARD_UART)[0])
#define UART_STATE (((volatile uint32_t *)BOARD_UART)[1])
#define UART_CTRL (((volatile uint32_t *)BOARD_UART)[2])
#define UART_BAUDDIV (((volatile uint32_t *)BOARD_UART)[4])
#define UART_TXFULL 1u
#define UART_RXFULL 2u

static void start_serial(void)
{
    UART_BAUDDIV = (BOARD_UART_HZ + BAUD / 2u) / BAUD;
    UART_CTRL = 3u; /* receiver, transmitter */
}

void board_write(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        while (UART_STATE & UART_TXFULL)
            ;
        UART_DATA = (uint8_t)text[i];
    }
}

int board_read(void)
{
    return UART_STATE & UART_RXFULL ? (int)(UART_DATA & 0xffu) : -1;
}

#endif

void board_init(void)
{
#ifdef BOARD_OUTPUT_SERIAL
    start_serial();
#endif
    cycles_start();
}
