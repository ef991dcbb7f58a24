/* What the board support of STM32 has in common: registers, the caches of the Cortex-M7, a USART or
 * LPUART as serial port. Who includes it defines GPIO_BASE, port A's address, and RCC_GPIOENR, whose bits give the ports A, B ... their clock.
 */
#ifndef STM32_H
#define STM32_H

#include "board.h"
#include "board_config.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_CCR REGISTER(0xe000ed14u)
#define SCB_CCSIDR REGISTER(0xe000ed80u)
#define SCB_CSSELR REGISTER(0xe000ed84u)
#define SCB_ICIALLU REGISTER(0xe000ef50u)
#define SCB_DCISW REGISTER(0xe000ef60u)

static void set(volatile uint32_t *address, uint32_t mask, uint32_t value)
{
    *address = (*address & ~mask) | value;
}

static inline void barrier(void)
{
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* Both caches of a Cortex-M7, empty (Arm DDI0403E B3.2 and B2.2.7). */
static inline void start_caches(void)
{
    barrier();
    SCB_ICIALLU = 0;
    barrier();
    if (!(SCB_CCR & 1u << 16)) {
        SCB_CSSELR = 0; /* the data cache of level 1 */
        barrier();
        const uint32_t sets = (SCB_CCSIDR >> 13 & 0x7fffu) + 1u;
        const uint32_t ways = (SCB_CCSIDR >> 3 & 0x3ffu) + 1u;
        for (uint32_t line = 0; line < sets; line++)
            for (uint32_t way = 0; way < ways; way++)
                SCB_DCISW = way << 30 | line << 5; /* four ways, lines of 32 bytes */
        barrier();
    }
    SCB_CCR |= 1u << 17 | 1u << 16; /* IC, DC */
    barrier();
}

#ifdef BOARD_OUTPUT_SERIAL

#define BAUD 115200u
#define USART_CR1 REGISTER(BOARD_UART + 0x00u)
#define USART_BRR REGISTER(BOARD_UART + 0x0cu)
#define USART_ISR REGISTER(BOARD_UART + 0x1cu)
#define USART_RDR REGISTER(BOARD_UART + 0x24u)
#define USART_TDR REGISTER(BOARD_UART + 0x28u)

static void connect_pin(uint32_t port, uint32_t pin, uint32_t function)
{
    const uint32_t gpio = GPIO_BASE + 0x400u * port;
    RCC_GPIOENR |= 1u << port;
    (void)RCC_GPIOENR;
    set(&REGISTER(gpio + 0x20u + pin / 8u * 4u), 0xfu << (pin % 8u * 4u), function << (pin % 8u * 4u));
    set(&REGISTER(gpio), 3u << (2u * pin), 2u << (2u * pin)); /* MODER: alternate function */
}

static void start_usart(uint32_t divider)
{
    USART_CR1 = 0;
    USART_BRR = divider;
    USART_CR1 = 1u << 3 | 1u << 2 | 1u; /* TE, RE, UE */
}

void board_write(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        while (!(USART_ISR & 1u << 7)) /* TXE */
            ;
        USART_TDR = (uint8_t)text[i];
    }
}

int board_read(void)
{
    return USART_ISR & 1u << 5 ? (int)(USART_RDR & 0xffu) : -1; /* RXNE */
}

#endif

#endif
