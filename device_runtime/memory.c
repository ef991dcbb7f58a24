/* memcpy and its family: word copies where the addresses allow, a byte at a time elsewhere.
 * Compiled with -fno-builtin so that a loop is not turned into a call of itself. */
#include <stddef.h>
#include <stdint.h>

typedef uint32_t __attribute__((may_alias)) word;

/* Both pointers may be read as words once they have the same offset in a word. */
static int same_alignment(const void *a, const void *b)
{
    return (((uintptr_t)a ^ (uintptr_t)b) & 3) == 0;
}

#if defined(__ARM_FEATURE_UNALIGNED) || defined(__x86_64__)
#define WORDS_AT_ANY_ADDRESS 1
typedef uint32_t __attribute__((may_alias, aligned(1))) loose_word;
#else
#define WORDS_AT_ANY_ADDRESS 0
typedef word loose_word;
#endif

/* Upwards; right for overlapping memory too if the target lies below the source. */
static void copy_up(uint8_t *d, const uint8_t *s, size_t n)
{
    if (n >= 8 && (WORDS_AT_ANY_ADDRESS || same_alignment(d, s))) {
        for (; (uintptr_t)d & 3; --n)
            *d++ = *s++;
        for (; n >= 16; n -= 16, d += 16, s += 16) {
            const loose_word *from = (const void *)s;
            word *to = (void *)d;
            uint32_t a = from[0], b = from[1], c = from[2], e = from[3];
            to[0] = a;
            to[1] = b;
            to[2] = c;
            to[3] = e;
        }
        for (; n >= 4; n -= 4, d += 4, s += 4)
            *(word *)(void *)d = *(const loose_word *)(const void *)s;
    }
    for (; n; --n)
        *d++ = *s++;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    copy_up(to, from, n);
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    uint8_t *d = to;
    const uint8_t *s = from;
    if ((uintptr_t)d - (uintptr_t)s >= n) {
        copy_up(d, s, n);
        return to;
    }
    d += n;
    s += n;
    if (n >= 8 && same_alignment(d, s)) {
        for (; (uintptr_t)d & 3; --n)
            *--d = *--s;
        for (; n >= 4; n -= 4) {
            d -= 4;
            s -= 4;
            *(word *)(void *)d = *(const word *)(const void *)s;
        }
    }
    for (; n; --n)
        *--d = *--s;
    return to;
}

void *memset(void *to, int value, size_t n)
{
    uint8_t *d = to;
    uint32_t pattern = (uint8_t)value * 0x01010101u;
    if (n >= 8) {
        for (; (uintptr_t)d & 3; --n)
            *d++ = (uint8_t)value;
        for (; n >= 16; n -= 16, d += 16) {
            word *four = (void *)d;
            four[0] = pattern;
            four[1] = pattern;
            four[2] = pattern;
            four[3] = pattern;
        }
        for (; n >= 4; n -= 4, d += 4)
            *(word *)(void *)d = pattern;
    }
    for (; n; --n)
        *d++ = (uint8_t)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t n)
{
    const uint8_t *a = left, *b = right;
    for (; n; --n, ++a, ++b)
        if (*a != *b)
            return *a - *b;
    return 0;
}

/* Not called here; compilers turn loops into it. */
size_t strlen(const char *text)
{
    const char *end = text;
    while (*end)
        ++end;
    return (size_t)(end - text);
}

#ifdef __arm__
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmissing-attributes" /* GCC knows more attributes of memcpy than a declaration may have */
#endif

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
/* The names of the Arm run-time ABI; memset has its last two arguments the other way round. */
#define COPY(name, of) \
    __attribute__((alias(#of))) void *name(void *restrict, const void *restrict, size_t)
#define MOVE(name, of) __attribute__((alias(#of))) void *name(void *, const void *, size_t)
COPY(__aeabi_memcpy, memcpy);
COPY(__aeabi_memcpy4, memcpy);
COPY(__aeabi_memcpy8, memcpy);
MOVE(__aeabi_memmove, memmove);
MOVE(__aeabi_memmove4, memmove);
MOVE(__aeabi_memmove8, memmove);

void __aeabi_memset(void *to, size_t n, int value)
{
    memset(to, value, n);
}

void __aeabi_memclr(void *to, size_t n)
{
    memset(to, 0, n);
}

__attribute__((alias("__aeabi_memset"))) void __aeabi_memset4(void *, size_t, int);
__attribute__((alias("__aeabi_memset"))) void __aeabi_memset8(void *, size_t, int);
__attribute__((alias("__aeabi_memclr"))) void __aeabi_memclr4(void *, size_t);
__attribute__((alias("__aeabi_memclr"))) void __aeabi_memclr8(void *, size_t);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
#endif
