/* nRF52840: crystal, instruction cache of the flash, UARTE0.
 *
 * Nordic nRF52840 Product Specification v1.7: CLOCK (HFXO, without which the rate is off by percents), NVMC
 * (ICACHECNF), GPIO, UARTE and EasyDMA, which reaches RAM alone: what is sent is copied there.
 * board_config.h has BOARD_TXD_PIN and BOARD_RXD_PIN: 32 x port + pin.
 */
#include "board.h"
#include "board_config.h"
#include "cycles.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define CLOCK_TASKS_HFCLKSTART REGISTER(0x40000000u)
#define CLOCK_EVENTS_HFCLKSTARTED REGISTER(0x40000100u)
#define NVMC_ICACHECNF REGISTER(0x4001e540u)

#if BOARD_CLOCK_HZ != 64000000u
#error "the core of an nRF52840 runs at 64 MHz: change clock_hz of the platform file"
#endif

static void start_clock(void)
{
    CLOCK_EVENTS_HFCLKSTARTED = 0;
    CLOCK_TASKS_HFCLKSTART = 1;
    while (!CLOCK_EVENTS_HFCLKSTARTED)
        ;
}

#ifdef BOARD_OUTPUT_SERIAL

/* ports 0 and 1 lie at 0x50000500 and 0x50000800 */
#define GPIO(pin, offset) REGISTER(0x50000500u + 0x300u * ((pin) / 32u) + (offset))
#define OUTSET(pin) GPIO(pin, 0x008u)
#define DIRSET(pin) GPIO(pin, 0x018u)
#define PIN_CNF(pin) GPIO(pin, 0x200u + 4u * ((pin) % 32u))
#define BIT(pin) (1u << ((pin) % 32u))
#define UARTE(offset) REGISTER(BOARD_UART + (offset))
#define TASKS_STARTRX UARTE(0x000u)
#define TASKS_STARTTX UARTE(0x008u)
#define EVENTS_ENDRX UARTE(0x110u)
#define EVENTS_ENDTX UARTE(0x120u)
#define ENABLE UARTE(0x500u)
#define PSEL_TXD UARTE(0x50cu)
#define PSEL_RXD UARTE(0x514u)
#define BAUDRATE UARTE(0x524u)
#define RXD_PTR UARTE(0x534u)
#define RXD_MAXCNT UARTE(0x538u)
#define TXD_PTR UARTE(0x544u)
#define TXD_MAXCNT UARTE(0x548u)

#define BAUD_115200 0x01d60000u
#define ON 8u

static volatile uint8_t received;
static char chunk[64];

static void receive(void)
{
    EVENTS_ENDRX = 0;
    TASKS_STARTRX = 1;
}

static void start_serial(void)
{
    OUTSET(BOARD_TXD_PIN) = BIT(BOARD_TXD_PIN); /* idle */
    DIRSET(BOARD_TXD_PIN) = BIT(BOARD_TXD_PIN);
    PIN_CNF(BOARD_RXD_PIN) = 0; /* an input that is connected */
    PSEL_TXD = BOARD_TXD_PIN;
    PSEL_RXD = BOARD_RXD_PIN;
    BAUDRATE = BAUD_115200;
    ENABLE = ON;
    RXD_PTR = (uint32_t)(uintptr_t)&received;
    RXD_MAXCNT = 1;
    receive();
}

void board_write(const char *text, size_t bytes)
{
    while (bytes != 0) {
        const size_t now = bytes < sizeof chunk ? bytes : sizeof chunk;
        for (size_t i = 0; i < now; i++)
            chunk[i] = text[i];
        TXD_PTR = (uint32_t)(uintptr_t)chunk;
        TXD_MAXCNT = (uint32_t)now;
        EVENTS_ENDTX = 0;
        __asm__ volatile("" ::: "memory"); /* the chunk is in RAM before EasyDMA reads it */
        TASKS_STARTTX = 1;
        while (!EVENTS_ENDTX)
            ;
        text += now;
        bytes -= now;
    }
}

int board_read(void)
{
    if (!EVENTS_ENDRX)
        return -1;
    const int byte = received;
    receive();
    return byte;
}

#endif

void board_init(void)
{
    start_clock();
    NVMC_ICACHECNF = 1; /* CACHEEN */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#ifdef BOARD_OUTPUT_SERIAL
    start_serial();
#endif
    cycles_start();
}
