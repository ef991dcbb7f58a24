/* STM32H743, revision V: clock from HSE or HSI through PLL1, voltage, flash, caches, USART3 on PD8 and PD9.
 *
 * ST RM0433: "FLASH registers" (ACR, table 17), "PWR registers", "RCC registers", "SYSCFG", "GPIO", "USART".
 * board_config.h may have BOARD_HSE_HZ, and BOARD_HSE_BYPASS where the external clock comes from another chip;
 * without it the internal oscillator of 64 MHz is used. Buses and flash run at half the core's clock.
 */
#define GPIO_BASE 0x58020000u
#define RCC_GPIOENR REGISTER(0x580244e0u) /* AHB4ENR */

#include "board.h"
#include "board_config.h"
#include "cycles.h"
#include "stm32.h"

#define FLASH_ACR REGISTER(0x52002000u)
#define SYSCFG_PWRCR REGISTER(0x5800042cu)
#define RCC_CR REGISTER(0x58024400u)
#define RCC_CFGR REGISTER(0x58024410u)
#define RCC_D1CFGR REGISTER(0x58024418u)
#define RCC_D2CFGR REGISTER(0x5802441cu)
#define RCC_D3CFGR REGISTER(0x58024420u)
#define RCC_PLLCKSELR REGISTER(0x58024428u)
#define RCC_PLLCFGR REGISTER(0x5802442cu)
#define RCC_PLL1DIVR REGISTER(0x58024430u)
#define RCC_AHB2ENR REGISTER(0x580244dcu)
#define RCC_APB1LENR REGISTER(0x580244e8u)
#define RCC_APB4ENR REGISTER(0x580244f4u)
#define PWR_CSR1 REGISTER(0x58024804u)
#define PWR_CR3 REGISTER(0x5802480cu)
#define PWR_D3CR REGISTER(0x58024818u)

#define MHZ 1000000u
#define PLL_N (BOARD_CLOCK_HZ / MHZ) /* 2 MHz times N, divided by 2 */
#define HCLK_MHZ (BOARD_CLOCK_HZ / MHZ / 2u)
/* table 17, VOS0 and VOS1 */
#define WAIT_STATES (HCLK_MHZ <= 70u ? 0u : HCLK_MHZ <= 140u ? 1u : HCLK_MHZ <= 210u ? 2u : HCLK_MHZ <= 225u ? 3u : 4u)
#define WRITE_DELAY (HCLK_MHZ <= 70u ? 0u : HCLK_MHZ <= 185u ? 1u : 2u)

#ifdef BOARD_HSE_HZ
#define PLL_M (BOARD_HSE_HZ / (2u * MHZ))
#define PLL_SOURCE 2u
#else
#define PLL_M 32u
#define PLL_SOURCE 0u
#endif

#if BOARD_CLOCK_HZ % MHZ || BOARD_CLOCK_HZ < 96u * MHZ || BOARD_CLOCK_HZ > 480u * MHZ
#error "the PLL gives 96 to 480 MHz in steps of 1 MHz: change clock_hz of the platform file"
#endif

enum { PORT_A, PORT_B, PORT_C, PORT_D };

/* The supply is the LDO, and RAM may be written when its voltage is valid; SRAM1 to SRAM3 need a clock. */
void board_start_memory(void)
{
    set(&PWR_CR3, 7u, 1u << 2 | 1u << 1); /* SCUEN, LDOEN, no BYPASS */
    while (!(PWR_CSR1 & 1u << 13))        /* ACTVOSRDY */
        ;
    RCC_AHB2ENR |= 7u << 29;
    (void)RCC_AHB2ENR;
}

/* The system clock is HSI when the PLL is set up. */
static void start_oscillator(void)
{
    RCC_CR |= 1u; /* HSION */
    while (!(RCC_CR & 1u << 2))
        ;
    set(&RCC_CFGR, 7u, 0);
    while (RCC_CFGR & 7u << 3)
        ;
    RCC_CR &= ~(1u << 24); /* PLL1ON */
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

static void await_voltage(void)
{
    (void)PWR_D3CR;
    while (!(PWR_D3CR & 1u << 13)) /* VOSRDY */
        ;
}

/* VOS1, and above 400 MHz VOS0: over-drive on top of it. */
static void raise_voltage(void)
{
    PWR_D3CR |= 3u << 14; /* VOS: scale 1 */
    await_voltage();
    if (BOARD_CLOCK_HZ > 400u * MHZ) {
        RCC_APB4ENR |= 1u << 1; /* SYSCFGEN */
        (void)RCC_APB4ENR;
        SYSCFG_PWRCR |= 1u; /* ODEN */
        await_voltage();
    }
}

static void start_clock(void)
{
    start_oscillator();
    raise_voltage();
    set(&RCC_PLLCKSELR, 0x3fu << 4 | 3u, PLL_M << 4 | PLL_SOURCE);
    set(&RCC_PLLCFGR, 0xfu, 1u << 16 | 1u << 2); /* DIVP1EN, wide VCO, reference of 2 to 4 MHz */
    RCC_PLL1DIVR = 1u << 24 | 1u << 16 | 1u << 9 | (PLL_N - 1u); /* R, Q, P: 2 */
    RCC_CR |= 1u << 24;
    while (!(RCC_CR & 1u << 25))
        ;
    RCC_D1CFGR = 4u << 4 | 8u;      /* D1PPRE, HPRE: 2 */
    RCC_D2CFGR = 4u << 8 | 4u << 4; /* D2PPRE2, D2PPRE1: 2 */
    RCC_D3CFGR = 4u << 4;           /* D3PPRE: 2 */
    FLASH_ACR = WRITE_DELAY << 4 | WAIT_STATES;
    while ((FLASH_ACR & 0xfu) != WAIT_STATES)
        ;
    set(&RCC_CFGR, 7u, 3u); /* SW: PLL1 */
    while ((RCC_CFGR & 7u << 3) != 3u << 3)
        ;
}

#ifdef BOARD_OUTPUT_SERIAL

static void start_serial(void)
{
    RCC_APB1LENR |= 1u << 18; /* USART3EN, clocked by PCLK1 */
    (void)RCC_APB1LENR;
    connect_pin(PORT_D, 8, 7);
    connect_pin(PORT_D, 9, 7);
    start_usart((BOARD_CLOCK_HZ / 4u + BAUD / 2u) / BAUD);
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
