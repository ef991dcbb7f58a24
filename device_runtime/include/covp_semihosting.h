/* Calls of a debugger or simulator: Arm, "Semihosting for AArch32 and AArch64", 2024Q3; RISC-V
   International, "RISC-V Semihosting", 1.0. Without such a host a call is a breakpoint or fault. */
#ifndef COVP_SEMIHOSTING_H
#define COVP_SEMIHOSTING_H

#include <stdint.h>

enum {
    COVP_SYS_OPEN = 0x01,
    COVP_SYS_CLOSE = 0x02,
    COVP_SYS_WRITEC = 0x03,
    COVP_SYS_WRITE0 = 0x04,
    COVP_SYS_WRITE = 0x05,
    COVP_SYS_READ = 0x06,
    COVP_SYS_READC = 0x07,
    COVP_SYS_ISERROR = 0x08,
    COVP_SYS_ISTTY = 0x09,
    COVP_SYS_SEEK = 0x0a,
    COVP_SYS_FLEN = 0x0c,
    COVP_SYS_TMPNAM = 0x0d,
    COVP_SYS_REMOVE = 0x0e,
    COVP_SYS_RENAME = 0x0f,
    COVP_SYS_CLOCK = 0x10,
    COVP_SYS_TIME = 0x11,
    COVP_SYS_ERRNO = 0x13,
    COVP_SYS_GET_CMDLINE = 0x15,
    COVP_SYS_HEAPINFO = 0x16,
    COVP_SYS_EXIT = 0x18,
    COVP_SYS_EXIT_EXTENDED = 0x20,
    COVP_SYS_ELAPSED = 0x30,
    COVP_SYS_TICKFREQ = 0x31
};

#define COVP_APPLICATION_EXIT 0x20026u

/* A call; parameter: a number, or the address of the operation's block of words. */
static inline int32_t covp_semihosting(uint32_t operation, uintptr_t parameter)
{
#if defined(__arm__)
    register uint32_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = parameter;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory", "cc");
    return (int32_t)r0;
#elif defined(__riscv)
    register uint32_t a0 __asm__("a0") = operation;
    register uintptr_t a1 __asm__("a1") = parameter;
    /* 16 bytes aligned: the three instructions must not lie on two pages. Before norvc, which would
       leave the linker no 2 bytes to pad with. */
    __asm__ volatile(".balign 16\n\t"
                     ".option push\n\t"
                     ".option norvc\n\t"
                     "slli x0, x0, 0x1f\n\t"
                     "ebreak\n\t"
                     "srai x0, x0, 7\n\t"
                     ".option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return (int32_t)a0;
#else
    (void)operation;
    (void)parameter;
    return -1;
#endif
}

#endif
