/* Driver of the quantized conv2d accelerator: it only handles the registers. */
#include "qconv2d.h"

#include "qconv2d_registers.h"

/* Memory and registers are seen in program order, by the compiler and on the bus. */
static inline void fence(void)
{
#if defined(__riscv)
    __asm__ volatile("fence iorw, iorw" ::: "memory");
#elif defined(__arm__)
    __asm__ volatile("dmb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

void qconv2d_run(const uintptr_t *job, const void *input, void *output)
{
    volatile uint32_t *registers = (volatile uint32_t *)QCONV2D_BASE;
    for (uint32_t offset = QCONV2D_WEIGHTS; offset <= QCONV2D_MODE; offset += 4)
        registers[offset / 4] = (uint32_t)*job++;
    registers[QCONV2D_INPUT / 4] = (uint32_t)(uintptr_t)input;
    registers[QCONV2D_OUTPUT / 4] = (uint32_t)(uintptr_t)output;
    fence();
    registers[QCONV2D_CTRL / 4] = QCONV2D_CTRL_START;
    while (registers[QCONV2D_STATUS / 4] & QCONV2D_STATUS_BUSY)
        ;
    fence();
    if (registers[QCONV2D_STATUS / 4] & QCONV2D_STATUS_ERROR)
        __builtin_trap();
}
