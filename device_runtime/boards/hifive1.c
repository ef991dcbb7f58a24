/* HiFive1 Rev B (FE310-G002): clock from the crystal through the PLL, SPI flash, UART0.
 *
 * SiFive FE310-G002 Manual v19p05: 6 (PRCI), 17 (GPIO), 18 (UART), 19 (SPI).
 */
#include "board.h"
#include "board_config.h"
#include "cycles.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define HFROSCCFG REGISTER(0x10008000u)
#define HFXOSCCFG REGISTER(0x10008004u)
#define PLLCFG REGISTER(0x10008008u)
#define PLLOUTDIV REGISTER(0x1000800cu)
#define GPIO_IOF_EN REGISTER(0x10012038u)
#define GPIO_IOF_SEL REGISTER(0x1001203cu)
#define QSPI0_SCKDIV REGISTER(0x10014000u)
#define UART_TXDATA REGISTER(BOARD_UART + 0x00u)
#define UART_RXDATA REGISTER(BOARD_UART + 0x04u)
#define UART_TXCTRL REGISTER(BOARD_UART + 0x08u)
#define UART_RXCTRL REGISTER(BOARD_UART + 0x0cu)
#define UART_DIV REGISTER(BOARD_UART + 0x18u)

#define BAUD 115200u
#define PLL_SEL (1u << 16)
#define READY (1u << 31)
#define ENABLED (1u << 30)

/* 6.5: the crystal's 16 MHz divided by R, 2, times 2 (F + 1) is 384 to 768 MHz, divided by 2 to the
   power of Q. */
#if BOARD_CLOCK_HZ >= 192000000u
#define PLL_Q 1u
#elif BOARD_CLOCK_HZ >= 96000000u
#define PLL_Q 2u
#else
#define PLL_Q 3u
#endif
#define PLL_F ((BOARD_CLOCK_HZ << PLL_Q) / 16000000u - 1u)

#if BOARD_CLOCK_HZ % 8000000u || BOARD_CLOCK_HZ < 48000000u || BOARD_CLOCK_HZ > 384000000u
#error "the PLL gives multiples of 8 MHz from 48 to 384 MHz: change clock_hz of the platform file"
#endif

/* ISSI IS25LP032D: 50 MHz at most for the read command that the controller uses after reset. */
#define FLASH_HZ 50000000u
#define SCKDIV ((BOARD_CLOCK_HZ + 2u * FLASH_HZ - 1u) / (2u * FLASH_HZ) - 1u)

/* The core runs from the ring oscillator while the PLL is set up. */
static void start_clock(void)
{
    HFROSCCFG |= ENABLED;
    while (!(HFROSCCFG & READY))
        ;
    PLLCFG &= ~PLL_SEL;
    HFXOSCCFG |= ENABLED;
    while (!(HFXOSCCFG & READY))
        ;
    QSPI0_SCKDIV = SCKDIV;
    PLLOUTDIV = 1u << 8; /* not divided further */
    PLLCFG = 1u << 17 | PLL_Q << 10 | PLL_F << 4 | 1u; /* the crystal divided by 2 */
    for (int i = 0; i < 7200; i++) /* LOCK is valid after 100 microseconds; the ring: 72 MHz at most */
        __asm__ volatile("nop");
    while (!(PLLCFG & READY))
        ;
    PLLCFG |= PLL_SEL;
}

#ifdef BOARD_OUTPUT_SERIAL

static void start_serial(void)
{
    const uint32_t pins = 3u << 16; /* RX, TX */
    GPIO_IOF_SEL &= ~pins;
    GPIO_IOF_EN |= pins;
    UART_DIV = (BOARD_CLOCK_HZ + BAUD / 2u) / BAUD - 1u;
    UART_TXCTRL = 1u;
    UART_RXCTRL = 1u;
}

void board_write(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        while (UART_TXDATA & READY) /* full */
            ;
        UART_TXDATA = (uint8_t)text[i];
    }
}

int board_read(void)
{
    const uint32_t data = UART_RXDATA;
    return data & READY ? -1 : (int)(data & 0xffu); /* empty */
}

#endif

void board_init(void)
{
    start_clock();
#ifdef BOARD_OUTPUT_SERIAL
    start_serial();
#endif
    cycles_start();
}
