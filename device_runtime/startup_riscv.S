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

#ifdef COVP_LINES
/* An interrupt of a peripheral calls covp_interrupt; any other trap stays here. The registers are
   those that a function may change. */
#ifdef __riscv_flen
#define FLOATS 20
#else
#define FLOATS 0
#endif
    .section .text.covp_trap, "ax", @progbits
    .global covp_trap
    .type covp_trap, @function
    .balign 4
covp_trap:
    addi sp, sp, -4 * (16 + FLOATS + 4)
    .set place, 0
    .irp name, ra, t0, t1, t2, t3, t4, t5, t6, a0, a1, a2, a3, a4, a5, a6, a7
    sw \name, 4 * place(sp)
    .set place, place + 1
    .endr
#ifdef __riscv_flen
    .irp name, ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, ft8, ft9, ft10, ft11, \
               fa0, fa1, fa2, fa3, fa4, fa5, fa6, fa7
    fsw \name, 4 * place(sp)
    .set place, place + 1
    .endr
    frcsr t0
    sw t0, 4 * place(sp)
#endif
    csrr t0, mcause
    bgez t0, covp_unexpected /* no interrupt: bit 31 is clear */
    call covp_interrupt
#ifdef __riscv_flen
    lw t0, 4 * (16 + FLOATS)(sp)
    fscsr t0
#endif
    .set place, 0
    .irp name, ra, t0, t1, t2, t3, t4, t5, t6, a0, a1, a2, a3, a4, a5, a6, a7
    lw \name, 4 * place(sp)
    .set place, place + 1
    .endr
#ifdef __riscv_flen
    .irp name, ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, ft8, ft9, ft10, ft11, \
               fa0, fa1, fa2, fa3, fa4, fa5, fa6, fa7
    flw \name, 4 * place(sp)
    .set place, place + 1
    .endr
#endif
    addi sp, sp, 4 * (16 + FLOATS + 4)
    mret
    .size covp_trap, . - covp_trap

    .section .text.covp_unexpected, "ax", @progbits
    .weak covp_interrupt
covp_interrupt:
covp_unexpected:
    j covp_unexpected
#else
/* A program that handles traps defines its own. */
    .section .text.covp_trap, "ax", @progbits
    .weak covp_trap
    .type covp_trap, @function
    .balign 4
covp_trap:
    j covp_trap
    .size covp_trap, . - covp_trap
#endif
