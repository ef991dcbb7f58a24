/* Entry and call stubs for Cortex-M, in the instructions that every one of them has. */
#include "task_layout.h"

    .syntax unified
    .thumb

/* The host starts the core here and stops it at covp_done. */
    .section .text.covp_enter, "ax", %progbits
    .global covp_enter
    .type covp_enter, %function
    .balign 4
covp_enter:
    ldr r0, =covp_stack_top
    mov sp, r0
    ldr r0, =0xe000ed08 /* VTOR */
    ldr r1, =covp_trap_vectors
    str r1, [r0]
#ifdef __ARM_FP
    ldr r0, =0xe000ed88 /* CPACR: full access to coprocessors 10 and 11, the FPU */
    ldr r1, [r0]
    orr r1, r1, #0xf00000
    str r1, [r0]
    dsb
    isb
#endif
    bl covp_run_tasks
    .global covp_done
    .type covp_done, %function
covp_done:
    b covp_done
    .size covp_enter, . - covp_enter
    .ltorg

/* Every exception ends the run at covp_done and leaves a record for the host:
 * exception number and the lower half of EXC_RETURN above it, sp (of the stacked frame), CFSR, HFSR, MMFAR, BFAR.
 * The core stays in handler mode; the host resets it before the next run. */
    .section .text.covp_trap, "ax", %progbits
    .type covp_trap, %function
    .balign 4
covp_trap:
    ldr r1, =(covp_queue + QUEUE_TRAP)
    mrs r0, ipsr
    mov r2, lr
    lsls r2, r2, #16
    orrs r0, r0, r2
    str r0, [r1]
    mov r0, sp /* may lie outside the memory: nothing is pushed */
    str r0, [r1, #4]
#if __ARM_ARCH >= 7
    ldr r2, =0xe000ed28
    ldr r0, [r2] /* CFSR */
    str r0, [r1, #8]
    ldr r0, [r2, #4] /* HFSR */
    str r0, [r1, #12]
    ldr r0, [r2, #12] /* MMFAR */
    str r0, [r1, #16]
    ldr r0, [r2, #16] /* BFAR */
    str r0, [r1, #20]
#endif
    ldr r0, =covp_done
    bx r0
    .size covp_trap, . - covp_trap
    .ltorg

    .section .text.covp_trap_vectors, "a", %progbits
    .balign 128
covp_trap_vectors:
    .word covp_stack_top
    .rept 15
    .word covp_trap
    .endr

/* void covp_call(struct covp_task *task) */
    .section .text.covp_call, "ax", %progbits
    .global covp_call
    .type covp_call, %function
    .balign 4
covp_call:
    push {r4, lr}
    mov r4, r0
    sub sp, #32
    movs r1, #(TASK_WORDS + 16)
    adds r0, r0, r1
    mov r1, sp
    ldmia r0!, {r2, r3}
    stmia r1!, {r2, r3}
    ldmia r0!, {r2, r3}
    stmia r1!, {r2, r3}
    ldmia r0!, {r2, r3}
    stmia r1!, {r2, r3}
    ldmia r0!, {r2, r3}
    stmia r1!, {r2, r3}
#ifdef __ARM_FP
    vldmia r0, {s0-s7}
#endif
    ldr r0, [r4, #TASK_FUNCTION]
    mov r12, r0
    ldr r0, [r4, #TASK_WORDS]
    ldr r1, [r4, #(TASK_WORDS + 4)]
    ldr r2, [r4, #(TASK_WORDS + 8)]
    ldr r3, [r4, #(TASK_WORDS + 12)]
    blx r12
    .global covp_call_return
    .type covp_call_return, %function
covp_call_return:
    str r0, [r4, #TASK_RESULT]
    str r1, [r4, #(TASK_RESULT + 4)]
#ifdef __ARM_FP
    ldr r0, [r4, #TASK_CODES]
    lsrs r0, r0, #1
    bcc 1f
    vstr s0, [r4, #TASK_RESULT]
1:
#endif
    add sp, #32
    pop {r4, pc}
    .size covp_call, . - covp_call
