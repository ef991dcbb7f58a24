/* Entry and call stubs for x86-64 with 32-bit pointers (x32; System V ABI, AMD64 supplement). */
#include "task_layout.h"

/* The host starts here and stops at covp_done, where it puts a breakpoint. Faults are signals, which
 * the host device catches: there are no handlers here. */
    .section .text.covp_enter, "ax", @progbits
    .global covp_enter
    .type covp_enter, @function
    .balign 16
covp_enter:
    movl $covp_stack_top, %esp
    call covp_run_tasks
    .global covp_done
    .type covp_done, @function
covp_done:
    jmp covp_done
    .size covp_enter, . - covp_enter

/* void covp_call(struct covp_task *task)
 * Every word of the task becomes a slot of 8 bytes; where its bit in codes is set, a word and the
 * next one are the halves of one slot. Six slots are popped into the registers, the others are
 * where the function looks for them. */
    .section .text.covp_call, "ax", @progbits
    .global covp_call
    .type covp_call, @function
    .balign 16
covp_call:
    pushq %rbx
    subq $(12 * 8), %rsp
    movl %edi, %ebx
    movl TASK_CODES(%rbx), %r8d
    xorl %ecx, %ecx
    movq %rsp, %rdx
1:
    movl TASK_WORDS(%rbx, %rcx, 4), %eax
    leal TASK_CODES_WIDE(%rcx), %r9d
    btl %r9d, %r8d
    jnc 2f
    incl %ecx
    movl TASK_WORDS(%rbx, %rcx, 4), %r10d
    shlq $32, %r10
    orq %r10, %rax
2:
    movq %rax, (%rdx)
    addq $8, %rdx
    incl %ecx
    cmpl $12, %ecx
    jb 1b
    movss (TASK_FLOATS + 0)(%rbx), %xmm0
    movss (TASK_FLOATS + 4)(%rbx), %xmm1
    movss (TASK_FLOATS + 8)(%rbx), %xmm2
    movss (TASK_FLOATS + 12)(%rbx), %xmm3
    movss (TASK_FLOATS + 16)(%rbx), %xmm4
    movss (TASK_FLOATS + 20)(%rbx), %xmm5
    movss (TASK_FLOATS + 24)(%rbx), %xmm6
    movss (TASK_FLOATS + 28)(%rbx), %xmm7
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %r8
    popq %r9
    movl TASK_FUNCTION(%rbx), %eax
    call *%rax
    .global covp_call_return
    .type covp_call_return, @function
covp_call_return:
    addq $(6 * 8), %rsp
    movq %rax, TASK_RESULT(%rbx)
    testl $1, TASK_CODES(%rbx)
    jz 3f
    movss %xmm0, TASK_RESULT(%rbx)
3:
    popq %rbx
    ret
    .size covp_call, . - covp_call

    .section .note.GNU-stack, "", @progbits
