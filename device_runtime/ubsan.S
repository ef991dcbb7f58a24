/* The calls that -fsanitize=undefined compiles in (compiler-rt, lib/ubsan/ubsan_handlers.h): each puts its arguments
 * on the stack, lowest first, and ends the run with an illegal instruction. The host knows the handler by its name
 * (covp/runtime/undefined_behaviour.py). Either name of one is the same: no run goes on after a finding. */
    .cfi_sections .debug_frame

#if defined(__arm__)
    .syntax unified
    .thumb
    .macro end_run
    push {r0-r3}
    .cfi_adjust_cfa_offset 16
    udf #0
    .endm
#elif defined(__riscv)
    .macro end_run
    addi sp, sp, -16
    .cfi_adjust_cfa_offset 16
    sw a0, 0(sp)
    sw a1, 4(sp)
    sw a2, 8(sp)
    sw a3, 12(sp)
    unimp
    .endm
#else
    .macro end_run
    subq $16, %rsp
    .cfi_adjust_cfa_offset 16
    movl %edi, 0(%rsp)
    movl %esi, 4(%rsp)
    movl %edx, 8(%rsp)
    movl %ecx, 12(%rsp)
    ud2
    .endm
#endif

    .macro handler name
    .section .text.covp_ubsan_\name, "ax", %progbits
    .balign 4
    .global __ubsan_handle_\name
    .type __ubsan_handle_\name, %function
    .global __ubsan_handle_\name\()_abort
    .type __ubsan_handle_\name\()_abort, %function
__ubsan_handle_\name:
__ubsan_handle_\name\()_abort:
    .cfi_startproc
    end_run
    .cfi_endproc
    .size __ubsan_handle_\name, . - __ubsan_handle_\name
    .size __ubsan_handle_\name\()_abort, . - __ubsan_handle_\name\()_abort
    .endm

    handler add_overflow
    handler sub_overflow
    handler mul_overflow
    handler negate_overflow
    handler divrem_overflow
    handler shift_out_of_bounds
    handler out_of_bounds
    handler local_out_of_bounds
    handler type_mismatch_v1
    handler alignment_assumption
    handler pointer_overflow
    handler float_cast_overflow
    handler load_invalid_value
    handler implicit_conversion
    handler invalid_builtin
    handler vla_bound_not_positive
    handler nonnull_arg
    handler nonnull_return_v1
    handler function_type_mismatch
    handler builtin_unreachable
    handler missing_return
