/* Reset of RV32: lies at the start of the flash, where the core begins. */
    .option norelax /* GNU as writes the ranges of this file's debug information before relaxing */
    .section .vectors, "ax", @progbits
    .global covp_reset
    .type covp_reset, @function
covp_reset:
    la sp, covp_stack_top
    la t0, covp_trap
    csrw mtvec, t0
#ifdef __riscv_flen
    li t0, 0x2000 /* mstatus.FS: initial */
    csrs mstatus, t0
#endif
    call covp_start
    .size covp_reset, . - covp_reset

/* A program that handles interrupts defines its own. */
    .section .text.covp_trap, "ax", @progbits
    .weak covp_trap
    .type covp_trap, @function
    .balign 4
covp_trap:
    j covp_trap
    .size covp_trap, . - covp_trap
