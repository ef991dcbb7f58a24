/* Interrupts of peripherals, with a handler or without one: with interrupts masked the core wakes
   from WFI, enters no handler, and the driver continues. A program that waits otherwise, such as
   for a semaphore of its operating system, defines COVP_HOOKS as a header with these functions. */
#ifndef COVP_INTERRUPT_H
#define COVP_INTERRUPT_H

#include <stdint.h>

#ifdef COVP_HOOKS
#include COVP_HOOKS
#else

/* Memory and registers are seen in program order, by the compiler and on the bus. */
static inline void covp_fence(void)
{
#if defined(__riscv)
    __asm__ volatile("fence iorw, iorw" ::: "memory");
#elif defined(__arm__)
    __asm__ volatile("dmb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/* What covp_forget_line goes back to: interrupts, and RISC-V's external ones, were enabled. */
#define COVP_WAITS 0x1u
#define COVP_ENABLED 0x8u
#define COVP_EXTERNAL 0x800u
static uint32_t covp_before __attribute__((unused));

/* Mask interrupts and let this line wake the core.
   Arm: PRIMASK, NVIC_ISER. RISC-V: mstatus.MIE, mie.MEIE, which stands for all lines. */
static inline void covp_wake_by_line(uint32_t line)
{
#if defined(__arm__)
    uint32_t primask;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(primask)::"memory");
    if (!covp_before)
        covp_before = COVP_WAITS | (primask & 1u ? 0 : COVP_ENABLED);
    ((volatile uint32_t *)0xe000e100)[line / 32] = 1u << line % 32;
#elif defined(__riscv)
    uint32_t status, enabled;
    (void)line;
    __asm__ volatile("csrrci %0, mstatus, 8\n\tcsrrs %1, mie, %2"
                     : "=&r"(status), "=&r"(enabled)
                     : "r"(COVP_EXTERNAL)
                     : "memory");
    if (!covp_before)
        covp_before = COVP_WAITS | (status & COVP_ENABLED) | (enabled & COVP_EXTERNAL);
#else
    (void)line;
#endif
}

/* WFI until an enabled line is up; returns at once when one is. */
static inline void covp_sleep(void)
{
#if defined(__arm__)
    __asm__ volatile("dsb\n\twfi" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("wfi" ::: "memory");
#endif
}

/* Undo covp_wake_by_line, after the peripheral has lowered its line: interrupts are enabled if they
   were. Arm: NVIC_ICPR, NVIC_ICER. */
static inline void covp_forget_line(uint32_t line)
{
#if defined(__arm__)
    ((volatile uint32_t *)0xe000e180)[line / 32] = 1u << line % 32;
    ((volatile uint32_t *)0xe000e280)[line / 32] = 1u << line % 32;
    uint32_t before = covp_before;
    covp_before = 0;
    if (before & COVP_ENABLED)
        __asm__ volatile("cpsie i" ::: "memory");
#elif defined(__riscv)
    (void)line;
    uint32_t before = covp_before;
    covp_before = 0;
    if (!(before & COVP_EXTERNAL))
        __asm__ volatile("csrc mie, %0" ::"r"(COVP_EXTERNAL) : "memory");
    if (before & COVP_ENABLED)
        __asm__ volatile("csrsi mstatus, 8" ::: "memory");
#else
    (void)line;
#endif
}

#endif

#endif
