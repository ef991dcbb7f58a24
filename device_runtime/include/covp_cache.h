/* Data caches and bus masters: an accelerator or DMA controller sees memory, not the core's cache.

   Before a master reads or writes a buffer, clean it: memory has what the core has stored, and no
   line of it is written back later, over what the master stores. After the master has written,
   covp_clean_invalidate it, or covp_invalidate it: the core sees what memory holds.

   Lines are the unit. What shares the first or last line with a buffer that a master writes must
   not be stored to by the core meanwhile: align such buffers to COVP_DATA_CACHE_LINE.

   COVP_DATA_CACHE_LINE (bytes), COVP_DATA_CACHE_START and _END (the RAM that the core caches) are
   NAME_place.h's, the compiler's options or covp_platform.h's; without them the core caches no RAM,
   and nothing is compiled. */
#ifndef COVP_CACHE_H
#define COVP_CACHE_H

#include <stddef.h>
#include <stdint.h>

#ifndef COVP_DATA_CACHE_LINE
#define COVP_DATA_CACHE_LINE 0
#endif

#if COVP_DATA_CACHE_LINE == 0

static inline void covp_clean(const volatile void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

static inline void covp_clean_invalidate(volatile void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

static inline void covp_invalidate(volatile void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

#elif defined(COVP_DATA_CACHE_WHOLE)

/* VexRiscv: stores are in memory at once, and one instruction empties the cache. */
static inline void covp_clean(const volatile void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

static inline void covp_clean_invalidate(volatile void *start, size_t bytes)
{
    uint32_t first = (uint32_t)(uintptr_t)start;
    if (bytes && first < COVP_DATA_CACHE_END && first + bytes > COVP_DATA_CACHE_START)
        __asm__ volatile(".word 0x500f" ::: "memory");
}

static inline void covp_invalidate(volatile void *start, size_t bytes)
{
    covp_clean_invalidate(start, bytes);
}

#else

/* What is done to a line. Arm DDI0403E (ARMv7-M) B3.2.2, the address of the register: DCIMVAC,
   DCCMVAC, DCCIMVAC; else RISC-V CMO 1.0 (Zicbom), the number of the instruction. */
#if defined(__arm__)
#define COVP_LINE_INVALIDATE 0xe000ef5cu
#define COVP_LINE_CLEAN 0xe000ef68u
#define COVP_LINE_CLEAN_INVALIDATE 0xe000ef70u
#define COVP_ON_LINE(what, line) (*(volatile uint32_t *)(what) = (line))
#define COVP_LINES_DONE() __asm__ volatile("dsb\n\tisb" ::: "memory")
#else
#define COVP_LINE_INVALIDATE 0
#define COVP_LINE_CLEAN 1
#define COVP_LINE_CLEAN_INVALIDATE 2
#define COVP_ON_LINE(what, line) \
    __asm__ volatile(".insn i 0x0f, 2, x0, %0, %1" ::"r"(line), "i"(what) : "memory")
#define COVP_LINES_DONE() __asm__ volatile("fence iorw, iorw" ::: "memory")
#endif

/* To each line of the bytes that the core caches. */
#define COVP_EACH_LINE(what, start, bytes)                                                        \
    do {                                                                                          \
        uint32_t covp_end = (uint32_t)(uintptr_t)(start) + (uint32_t)(bytes);                     \
        uint32_t covp_line = (uint32_t)(uintptr_t)(start) & -(uint32_t)COVP_DATA_CACHE_LINE;      \
        if (covp_line < COVP_DATA_CACHE_START)                                                    \
            covp_line = COVP_DATA_CACHE_START;                                                    \
        if (covp_end > COVP_DATA_CACHE_END)                                                       \
            covp_end = COVP_DATA_CACHE_END;                                                       \
        if (!(bytes) || covp_line >= covp_end)                                                    \
            break;                                                                                \
        COVP_LINES_DONE(); /* the core's stores are in the cache */                               \
        for (; covp_line < covp_end; covp_line += COVP_DATA_CACHE_LINE)                           \
            COVP_ON_LINE(what, covp_line);                                                        \
        COVP_LINES_DONE();                                                                        \
    } while (0)

/* Memory has what the core has stored to these bytes. */
static inline void covp_clean(const volatile void *start, size_t bytes)
{
    COVP_EACH_LINE(COVP_LINE_CLEAN, start, bytes);
}

/* The same, and the core sees what memory holds from then on. */
static inline void covp_clean_invalidate(volatile void *start, size_t bytes)
{
    COVP_EACH_LINE(COVP_LINE_CLEAN_INVALIDATE, start, bytes);
}

/* The core sees what memory holds; what it has stored and not cleaned is lost. Lines that reach
   beyond these bytes are cleaned, so that nothing else is lost. */
static inline void covp_invalidate(volatile void *start, size_t bytes)
{
    uint32_t first = (uint32_t)(uintptr_t)start, end = first + (uint32_t)bytes;
    uint32_t line = COVP_DATA_CACHE_LINE;
    if (!bytes)
        return;
    if (first & (line - 1))
        covp_clean_invalidate(start, 1);
    if (end & (line - 1))
        covp_clean_invalidate((volatile void *)(uintptr_t)(end - 1), 1);
    first = (first + line - 1) & -line;
    end &= -line;
    if (first < end)
        COVP_EACH_LINE(COVP_LINE_INVALIDATE, first, end - first);
}

#endif

#endif
