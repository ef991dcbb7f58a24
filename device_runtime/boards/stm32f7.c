/* STM32F746: clock from HSE or HSI through the PLL, over-drive, flash, caches, serial port.
 *
 * ST RM0385: 3.7.1 (FLASH_ACR), 4.4 (PWR), 5.3 (RCC), 6.4 (GPIO), 31.8 (USART). board_config.h
 * may have BOARD_HSE_HZ, and BOARD_HSE_BYPASS where the external clock comes from another chip; without it
 * the internal oscillator of 16 MHz is used. BOARD_USART is 1 (PA9, PB7: 32F746GDISCOVERY) or 3 (PD8, PD9:
 * NUCLEO-F746ZG).
 */
#define GPIO_BASE 0x40020000u
#define RCC_GPIOENR REGISTER(0x40023830u) /* AHB1ENR */

#include "board.h"
#include "board_config.h"
#include "cycles.h"
#include "stm32.h"

#define PWR_CR1 REGISTER(0x40007000u)
#define PWR_CSR1 REGISTER(0x40007004u)
#define RCC_CR REGISTER(0x40023800u)
#define RCC_PLLCFGR REGISTER(0x40023804u)
#define RCC_CFGR REGISTER(0x40023808u)
#define RCC_APB1ENR REGISTER(0x40023840u)
#define RCC_APB2ENR REGISTER(0x40023844u)
#define FLASH_ACR REGISTER(0x40023c00u)

#define PLL_N (BOARD_CLOCK_HZ / 500000u) /* 1 MHz times N, divided by 2 */
#define WAIT_STATES ((BOARD_CLOCK_HZ - 1u) / 30000000u) /* table 5: 2.7 to 3.6 V */

#ifdef BOARD_HSE_HZ
#define PLL_M (BOARD_HSE_HZ / 1000000u)
#define PLL_SOURCE (1u << 22)
#else
#define PLL_M 16u
#define PLL_SOURCE 0u
#endif

#if BOARD_CLOCK_HZ % 500000u || BOARD_CLOCK_HZ < 50000000u || BOARD_CLOCK_HZ > 216000000u
#error "the PLL gives 50 to 216 MHz in steps of 500 kHz: change clock_hz of the platform file"
#endif

enum { PORT_A, PORT_B, PORT_C, PORT_D };

/* The system clock is HSI when the PLL is set up. */
static void start_oscillator(void)
{
    RCC_CR |= 1u; /* HSION */
    while (!(RCC_CR & 1u << 1))
        ;
    set(&RCC_CFGR, 3u, 0);
    while (RCC_CFGR & 3u << 2)
        ;
    RCC_CR &= ~(1u << 24); /* PLLON */
    while (RCC_CR & 1u << 25)
        ;
#ifdef BOARD_HSE_HZ
#ifdef BOARD_HSE_BYPASS
    RCC_CR |= 1u << 18; /* HSEBYP */
#endif
    RCC_CR |= 1u << 16; /* HSEON */
    while (!(RCC_CR & 1u << 17))
        ;
#endif
}

/* 4.1.4: above 180 MHz with over-drive, which is entered while the PLL is on and not yet used. */
static void start_clock(void)
{
    RCC_APB1ENR |= 1u << 28; /* PWREN */
    (void)RCC_APB1ENR;
    start_oscillator();
    PWR_CR1 |= 3u << 14; /* VOS: scale 1 */
    RCC_PLLCFGR = 9u << 24 | PLL_SOURCE | PLL_N << 6 | PLL_M; /* Q 9, P 2 */
    RCC_CR |= 1u << 24;
    if (BOARD_CLOCK_HZ > 180000000u) {
        PWR_CR1 |= 1u << 16; /* ODEN */
        while (!(PWR_CSR1 & 1u << 16))
            ;
        PWR_CR1 |= 1u << 17; /* ODSWEN */
        while (!(PWR_CSR1 & 1u << 17))
            ;
    }
    FLASH_ACR = 1u << 9 | 1u << 8 | WAIT_STATES; /* ARTEN, PRFTEN */
    while ((FLASH_ACR & 0xfu) != WAIT_STATES)
        ;
    set(&RCC_CFGR, 0x3fu << 10, 4u << 13 | 5u << 10); /* PPRE2: 2, PPRE1: 4 */
    while (!(RCC_CR & 1u << 25))
        ;
    set(&RCC_CFGR, 3u, 2u); /* SW: PLL */
    while ((RCC_CFGR & 3u << 2) != 2u << 2)
        ;
}

#ifdef BOARD_OUTPUT_SERIAL

static void start_serial(void)
{
#if BOARD_USART == 1
    const uint32_t clock = BOARD_CLOCK_HZ / 2u;
    RCC_APB2ENR |= 1u << 4; /* USART1EN */
    (void)RCC_APB2ENR;
    connect_pin(PORT_A, 9, 7);
    connect_pin(PORT_B, 7, 7);
#elif BOARD_USART == 3
    const uint32_t clock = BOARD_CLOCK_HZ / 4u;
    RCC_APB1ENR |= 1u << 18; /* USART3EN */
    (void)RCC_APB1ENR;
    connect_pin(PORT_D, 8, 7);
    connect_pin(PORT_D, 9, 7);
#else
#error "BOARD_USART is 1 or 3: see firmware.defines of the platform file"
#endif
    start_usart((clock + BAUD / 2u) / BAUD);
}

#endif

void board_init(void)
{
    start_clock();
    start_caches();
#ifdef BOARD_OUTPUT_SERIAL
    start_serial();
#endif
    cycles_start();
}
