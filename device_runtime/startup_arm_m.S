/* Vector table and reset of Cortex-M. A program replaces a handler by defining its name. */
    .syntax unified
    .thumb

    .section .vectors, "a", %progbits
    .balign 128
    .global covp_vectors
covp_vectors:
    .word covp_stack_top
    .word covp_reset
    .word NMI_Handler
    .word HardFault_Handler
    .word MemManage_Handler
    .word BusFault_Handler
    .word UsageFault_Handler
    .word 0, 0, 0, 0
    .word SVC_Handler
    .word DebugMon_Handler
    .word 0
    .word PendSV_Handler
    .word SysTick_Handler
#ifdef COVP_LINES
    .rept COVP_LINES
    .word covp_interrupt
    .endr
#endif

    .section .text.covp_reset, "ax", %progbits
    .global covp_reset
    .type covp_reset, %function
covp_reset:
    ldr r0, =covp_stack_top
    mov sp, r0
    ldr r0, =0xe000ed08 /* VTOR, which not every chip has at this table after reset */
    ldr r1, =covp_vectors
    str r1, [r0]
#ifdef __ARM_FP
    ldr r0, =0xe000ed88 /* CPACR: full access to coprocessors 10 and 11, the FPU */
    ldr r1, [r0]
    orr r1, r1, #0xf00000
    str r1, [r0]
    dsb
    isb
#endif
    bl covp_start
    .size covp_reset, . - covp_reset
    .ltorg

    .section .text.covp_unexpected, "ax", %progbits
    .type covp_unexpected, %function
covp_unexpected:
    b covp_unexpected
    .size covp_unexpected, . - covp_unexpected

    .macro handler name
    .weak \name
    .thumb_set \name, covp_unexpected
    .endm
    handler NMI_Handler
    handler HardFault_Handler
    handler MemManage_Handler
    handler BusFault_Handler
    handler UsageFault_Handler
    handler SVC_Handler
    handler DebugMon_Handler
    handler PendSV_Handler
    handler SysTick_Handler
    handler covp_interrupt
