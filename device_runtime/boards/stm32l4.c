/* STM32L4R5: clock from the MSI through the PLL, flash, LPUART1 on PG7 and PG8.
 *
 * ST RM0432: 5 (PWR), 3.7.1 (FLASH_ACR), 6.4 (RCC), 8.4 (GPIO), 51.7 (LPUART). The MSI is trimmed
 * to about 1 percent, which is enough for a serial port.
 */
#define GPIO_BASE 0x48000000u
#define RCC_GPIOENR REGISTER(0x4002104cu) /* AHB2ENR */

#include "board.h"
#include "board_config.h"
#include "cycles.h"
#include "stm32.h"

#define PWR_CR1 REGISTER(0x40007000u)
#define PWR_CR2 REGISTER(0x40007004u)
#define PWR_SR2 REGISTER(0x40007014u)
#define PWR_CR5 REGISTER(0x40007080u)
#define RCC_CR REGISTER(0x40021000u)
#define RCC_CFGR REGISTER(0x40021008u)
#define RCC_PLLCFGR REGISTER(0x4002100cu)
#define RCC_APB1ENR1 REGISTER(0x40021058u)
#define RCC_APB1ENR2 REGISTER(0x4002105cu)
#define FLASH_ACR REGISTER(0x40022000u)

#define MSI_HZ 4000000u
#define PLL_N (2u * (BOARD_CLOCK_HZ / MSI_HZ)) /* 4 MHz times N, divided by 2 */
#define WAIT_STATES ((BOARD_CLOCK_HZ - 1u) / 20000000u) /* table 15: range 1 and its boost mode */

#if BOARD_CLOCK_HZ % MSI_HZ || BOARD_CLOCK_HZ < 32000000u || BOARD_CLOCK_HZ > 120000000u
#error "the PLL gives multiples of 4 MHz from 32 to 120 MHz: change clock_hz of the platform file"
#endif

/* 6.2: above 80 MHz the range 1 boost mode, entered and left with the AHB's clock divided by 2. */
static void start_clock(void)
{
    RCC_APB1ENR1 |= 1u << 28; /* PWREN */
    (void)RCC_APB1ENR1;
    set(&PWR_CR1, 3u << 9, 1u << 9); /* VOS: range 1 */
    while (PWR_SR2 & 1u << 10)       /* VOSF */
        ;
    RCC_CR |= 1u; /* MSION, and MSI as the system clock while the PLL is set up */
    while (!(RCC_CR & 1u << 1))
        ;
    set(&RCC_CFGR, 3u, 0);
    while (RCC_CFGR & 3u << 2)
        ;
    set(&RCC_CFGR, 0xfu << 4, 8u << 4); /* HPRE: 2 */
    if (BOARD_CLOCK_HZ > 80000000u)
        PWR_CR5 &= ~(1u << 8); /* R1MODE */
    set(&RCC_CR, 0xfu << 4, 6u << 4 | 1u << 3); /* MSIRANGE: 4 MHz, by MSIRGSEL */
    FLASH_ACR = 1u << 10 | 1u << 9 | 1u << 8 | WAIT_STATES; /* DCEN, ICEN, PRFTEN */
    while ((FLASH_ACR & 0xfu) != WAIT_STATES)
        ;
    RCC_CR &= ~(1u << 24); /* PLLON */
    while (RCC_CR & 1u << 25)
        ;
    RCC_PLLCFGR = 1u << 24 | PLL_N << 8 | 1u; /* PLLREN, R 2, M 1, from the MSI */
    RCC_CR |= 1u << 24;
    while (!(RCC_CR & 1u << 25))
        ;
    set(&RCC_CFGR, 3u, 3u); /* SW: PLL */
    while ((RCC_CFGR & 3u << 2) != 3u << 2)
        ;
    for (int i = 0; i < 64; i++) /* at least a microsecond */
        __asm__ volatile("nop");
    set(&RCC_CFGR, 0xfu << 4, 0);
}

#ifdef BOARD_OUTPUT_SERIAL

enum { PORT_G = 6 };

static void start_serial(void)
{
    RCC_APB1ENR2 |= 1u << 0; /* LPUART1EN, clocked by PCLK1 */
    (void)RCC_APB1ENR2;
    PWR_CR2 |= 1u << 9; /* IOSV: the supply of PG2 to PG15 is there */
    connect_pin(PORT_G, 7, 8);
    connect_pin(PORT_G, 8, 8);
    start_usart((uint32_t)((256ull * BOARD_CLOCK_HZ + BAUD / 2u) / BAUD));
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
