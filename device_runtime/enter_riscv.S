/* Entry and call stubs for RV32. gp stays unused: modules are linked apart from each other. */
#include "task_layout.h"

/* The host starts the core here and stops it at covp_done. */
    .section .text.covp_enter, "ax", @progbits
    .global covp_enter
    .type covp_enter, @function
    .balign 4
covp_enter:
    la sp, covp_stack_top
    la t0, covp_trap
    csrw mtvec, t0
#ifdef __riscv_flen
    li t0, 0x2000 /* mstatus.FS: initial */
    csrs mstatus, t0
#endif
    call covp_run_tasks
    .global covp_done
    .type covp_done, @function
covp_done:
    j covp_done
    .size covp_enter, . - covp_enter

/* Every trap ends the run at covp_done and leaves a record for the host:
 * 1, mcause, mepc, mtval, sp, ra. */
    .section .text.covp_trap, "ax", @progbits
    .type covp_trap, @function
    .balign 4
covp_trap:
    la t0, covp_queue
    sw sp, (QUEUE_TRAP + 16)(t0)
    sw ra, (QUEUE_TRAP + 20)(t0)
    csrr t1, mcause
    sw t1, (QUEUE_TRAP + 4)(t0)
    csrr t1, mepc
    sw t1, (QUEUE_TRAP + 8)(t0)
    csrr t1, mtval
    sw t1, (QUEUE_TRAP + 12)(t0)
    li t1, 1
    sw t1, QUEUE_TRAP(t0)
    j covp_done
    .size covp_trap, . - covp_trap

/* void covp_call(struct covp_task *task) */
    .section .text.covp_call, "ax", @progbits
    .global covp_call
    .type covp_call, @function
    .balign 4
covp_call:
    addi sp, sp, -32
    sw ra, 28(sp)
    sw s0, 24(sp)
    mv s0, a0
    lw t1, (TASK_WORDS + 32)(s0)
    lw t2, (TASK_WORDS + 36)(s0)
    lw t3, (TASK_WORDS + 40)(s0)
    lw t4, (TASK_WORDS + 44)(s0)
    sw t1, 0(sp)
    sw t2, 4(sp)
    sw t3, 8(sp)
    sw t4, 12(sp)
#ifdef __riscv_float_abi_single
    flw fa0, (TASK_FLOATS + 0)(s0)
    flw fa1, (TASK_FLOATS + 4)(s0)
    flw fa2, (TASK_FLOATS + 8)(s0)
    flw fa3, (TASK_FLOATS + 12)(s0)
    flw fa4, (TASK_FLOATS + 16)(s0)
    flw fa5, (TASK_FLOATS + 20)(s0)
    flw fa6, (TASK_FLOATS + 24)(s0)
    flw fa7, (TASK_FLOATS + 28)(s0)
#endif
    lw t0, TASK_FUNCTION(s0)
    lw a0, (TASK_WORDS + 0)(s0)
    lw a1, (TASK_WORDS + 4)(s0)
    lw a2, (TASK_WORDS + 8)(s0)
    lw a3, (TASK_WORDS + 12)(s0)
    lw a4, (TASK_WORDS + 16)(s0)
    lw a5, (TASK_WORDS + 20)(s0)
    lw a6, (TASK_WORDS + 24)(s0)
    lw a7, (TASK_WORDS + 28)(s0)
    jalr t0
    .global covp_call_return
    .type covp_call_return, @function
covp_call_return:
    sw a0, TASK_RESULT(s0)
    sw a1, (TASK_RESULT + 4)(s0)
#ifdef __riscv_float_abi_single
    lw t0, TASK_CODES(s0)
    andi t0, t0, 1
    beqz t0, 1f
    fsw fa0, TASK_RESULT(s0)
1:
#endif
    lw s0, 24(sp)
    lw ra, 28(sp)
    addi sp, sp, 32
    ret
    .size covp_call, . - covp_call
