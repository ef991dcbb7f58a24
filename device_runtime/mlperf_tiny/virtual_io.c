/* Audio and pins of covp's virtual board (peripherals/i2s_microphone.py, peripherals/gpio.py). The
 * serial port's receiving line is pin 8 as well, so that a byte wakes the core whatever port
 * it is. */
#include "covp_interrupt.h"
#include "microphone.h" /* generated: registers and interrupt lines */
#include "pins.h"
#include "wake_word.h"

#define SERIAL_INPUT (1u << 8)

void io_init(void)
{
    PINS_OUTPUT = 1u << PIN_DETECTED | 1u << PIN_TIMESTAMP;
    PINS_DIRECTION = 1u << PIN_PROCESSING | 1u << PIN_DETECTED | 1u << PIN_TIMESTAMP;
    PINS_RISING = SERIAL_INPUT;
}

void io_write(wake_word_pin pin, bool level)
{
    if (level)
        PINS_SET = 1u << pin;
    else
        PINS_CLEAR = 1u << pin;
}

void io_audio_start(int16_t *buffer, uint32_t samples_per_half)
{
    MICROPHONE_BUFFER = (uint32_t)(uintptr_t)buffer;
    MICROPHONE_LENGTH = samples_per_half;
    MICROPHONE_CTRL = MICROPHONE_CTRL_ENABLE_MASK | MICROPHONE_CTRL_INTERRUPT_MASK;
}

void io_audio_stop(void)
{
    MICROPHONE_CTRL = 0;
    MICROPHONE_STATUS = MICROPHONE_STATUS; /* clear the flags */
}

bool io_audio_full(uint32_t half, uint32_t *overruns)
{
    uint32_t flag = MICROPHONE_STATUS_FULL0_MASK << half, status = MICROPHONE_STATUS;
    if (!(status & flag))
        return false;
    if (status & MICROPHONE_STATUS_OVERRUN_MASK)
        ++*overruns;
    MICROPHONE_STATUS = flag | MICROPHONE_STATUS_OVERRUN_MASK;
    covp_fence();
    return true;
}

#if defined(__arm__)

/* One bit of an NVIC register array. */
static void set_line(uint32_t registers, uint32_t line)
{
    ((volatile uint32_t *)registers)[line / 32u] = 1u << line % 32u;
}

/* The lines are enabled while the core sleeps with interrupts masked: they end WFI and no handler of
 * theirs runs. A request stays pending until it is cleared. */
void io_sleep(void)
{
    static const uint32_t lines[2] = {MICROPHONE_IRQ, PINS_IRQ};
    for (uint32_t i = 0; i < 2; i++)
        covp_wake_by_line(lines[i]);
    covp_sleep();
    PINS_PENDING = SERIAL_INPUT;
    for (uint32_t i = 0; i < 2; i++) {
        set_line(0xe000e180u, lines[i]); /* NVIC_ICER */
        set_line(0xe000e280u, lines[i]); /* NVIC_ICPR */
    }
    __asm__ volatile("cpsie i" ::: "memory");
}

#else

/* Interrupts stay masked: they only end WFI. */
void io_sleep(void)
{
    covp_wake_by_line(MICROPHONE_IRQ); /* stands for all lines */
    covp_sleep();
    PINS_PENDING = SERIAL_INPUT;
}

#endif
