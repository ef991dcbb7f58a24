/* Interrupts of peripherals with a handler: void covp_interrupt(void), which asks the peripherals
   which of them it was. */
#ifndef COVP_HANDLER_H
#define COVP_HANDLER_H

#include <covp_interrupt.h>

void covp_interrupt(void);

/* Let interrupts in: covp_interrupt is called for as long as the line is up. RISC-V: or any other
   line of the core. */
static inline void covp_enable_line(uint32_t line)
{
#if defined(__arm__)
    ((volatile uint32_t *)0xe000e100)[line / 32] = 1u << line % 32;
    __asm__ volatile("cpsie i" ::: "memory");
#elif defined(__riscv)
    (void)line;
    __asm__ volatile("csrs mie, %0\n\tcsrsi mstatus, 8" ::"r"(0x800) : "memory");
#else
    (void)line;
#endif
}

/* Mask interrupts, so that nothing comes between looking and going to sleep. */
static inline void covp_mask_interrupts(void)
{
#if defined(__arm__)
    __asm__ volatile("cpsid i" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("csrci mstatus, 8" ::: "memory");
#endif
}

/* Undo covp_mask_interrupts: handlers of what has come run now. */
static inline void covp_unmask_interrupts(void)
{
#if defined(__arm__)
    __asm__ volatile("cpsie i" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("csrsi mstatus, 8" ::: "memory");
#endif
}

#endif
