/* Text for a debugger instead of the serial port, and the program's end; see board.h. */
#include "board.h"

#if defined(BOARD_OUTPUT_SEMIHOSTING)

#include "covp_semihosting.h"

enum { WRITE_MODE = 4 };

void board_write(const char *text, size_t bytes)
{
    static const char terminal[] = ":tt";
    static int32_t handle = -1;
    if (handle < 0) {
        const uintptr_t open[] = {(uintptr_t)terminal, WRITE_MODE, sizeof terminal - 1};
        handle = covp_semihosting(COVP_SYS_OPEN, (uintptr_t)open);
    }
    const uintptr_t write[] = {(uintptr_t)handle, (uintptr_t)text, bytes};
    (void)covp_semihosting(COVP_SYS_WRITE, (uintptr_t)write);
}

int board_read(void)
{
    return covp_semihosting(COVP_SYS_READC, 0);
}

void board_exit(int status)
{
    const uintptr_t reason[] = {COVP_APPLICATION_EXIT, (uintptr_t)(intptr_t)status};
    (void)covp_semihosting(COVP_SYS_EXIT_EXTENDED, (uintptr_t)reason);
}

#else

void board_exit(int status)
{
    (void)status;
}

#endif

#if defined(BOARD_OUTPUT_RTT)

#ifndef BOARD_RTT_BYTES
#define BOARD_RTT_BYTES 1024u /* of the ring for text; the debugger empties it while the core runs */
#endif
#define DOWN_BYTES 64u

/* SEGGER UM08001, "Real Time Transfer": a host looks for the identification in RAM, or for the
   symbol _SEGGER_RTT. A ring is empty where both offsets are equal, so that one byte stays free. */
struct ring {
    const char *name;
    char *buffer;
    uint32_t bytes;
    volatile uint32_t write, read;
    uint32_t flags; /* 0: what finds no room is left out */
};

struct control {
    volatile char identification[16];
    int32_t up_count, down_count;
    struct ring up, down;
};

extern struct control rtt __asm__("_SEGGER_RTT");
static char up[BOARD_RTT_BYTES], down[DOWN_BYTES];
struct control rtt = {
    {0}, 1, 1, {"Terminal", up, sizeof up, 0, 0, 0}, {"Terminal", down, sizeof down, 0, 0, 0},
};

static void barrier(void)
{
#if defined(__arm__)
    __asm__ volatile("dmb" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("fence" ::: "memory");
#endif
}

/* Written at run time and from its end, so that a host finds it nowhere but here and complete. */
static void identify(void)
{
    static const char reversed[] = "TTR REGGES";
    if (rtt.identification[0])
        return;
    for (unsigned i = 0; i < sizeof reversed - 1; i++)
        rtt.identification[sizeof reversed - 2 - i] = reversed[i];
    barrier();
}

void board_write(const char *text, size_t bytes)
{
    identify();
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t at = rtt.up.write, next = at + 1 == sizeof up ? 0 : at + 1;
        if (next == rtt.up.read)
            return;
        up[at] = text[i];
        barrier();
        rtt.up.write = next;
    }
}

int board_read(void)
{
    identify();
    const uint32_t at = rtt.down.read;
    if (at == rtt.down.write)
        return -1;
    barrier();
    const int byte = (uint8_t)((volatile char *)down)[at];
    rtt.down.read = at + 1 == sizeof down ? 0 : at + 1;
    return byte;
}

#endif
