/* Accesses that this core, or this instruction, makes at aligned addresses only. */
#include "planted.h"

#define AS(type, pointer) ((const type *)(const void *)(pointer))

/* load_word: a word at any byte of a packet. */
uint32_t load_word(const uint8_t *packet)
{
#ifdef BUG
    uint32_t word = *AS(uint32_t, packet); /* BUG: misaligned access */
    HIDE(word);
    return word;
#else
    return packet[0] | (uint32_t)packet[1] << 8 | (uint32_t)packet[2] << 16 | (uint32_t)packet[3] << 24;
#endif
}

/* load_half: a halfword at an odd byte. */
int32_t load_half(const uint8_t *packet)
{
#ifdef BUG
    int32_t half = *AS(uint16_t, packet); /* BUG: misaligned access */
    HIDE(half);
    return half;
#else
    return packet[0] | packet[1] << 8;
#endif
}

/* store_word: a header field of a packed structure written through a pointer to it. */
struct __attribute__((packed)) header { uint8_t kind; uint32_t length; };

void store_word(uint8_t *packet, uint32_t length)
{
    struct header *header = (struct header *)(void *)packet;
    header->kind = 1;
#ifdef BUG
    void *field = packet + 1;
    HIDE(field);
    *(uint32_t *)field = length; /* BUG: misaligned access */
#else
    header->length = length;
#endif
}

/* dot_words: four bytes at once, from an address that need not be a multiple of four. */
int32_t dot_words(const uint8_t *x, int32_t n)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i + 4 <= n; i += 4) {
        uint32_t word;
#ifdef BUG
        word = *AS(uint32_t, x + i); /* BUG: misaligned access */
#else
        memcpy(&word, x + i, 4);
#endif
        sum += (word & 0xFF) + (word >> 8 & 0xFF) + (word >> 16 & 0xFF) + (word >> 24);
    }
    return (int32_t)sum;
}

#if defined(__ARM_ARCH_7EM__)
/* load_pair: LDRD, which faults where LDR does not. */
uint32_t load_pair(const uint8_t *packet)
{
    uint32_t low, high;
#ifdef BUG
    __asm__("ldrd %0, %1, [%2]" : "=r"(low), "=r"(high) : "r"(packet), "m"(*packet)); /* BUG: misaligned access */
#else
    __asm__("ldr %0, [%1]" : "=r"(low) : "r"(packet), "m"(*packet));
    __asm__("ldr %0, [%1, #4]" : "=r"(high) : "r"(packet), "m"(*packet));
#endif
    return low + high;
}

/* load_many: LDM of a burst of samples. */
uint32_t load_many(const uint8_t *packet)
{
    uint32_t sum;
#ifdef BUG
    __asm__("ldm %1, {r2, r3}\n\tadd %0, r2, r3" : "=r"(sum) : "r"(packet), "m"(*packet) : "r2", "r3"); /* BUG: misaligned access */
#else
    __asm__("ldr r2, [%1]\n\tldr r3, [%1, #4]\n\tadd %0, r2, r3" : "=r"(sum) : "r"(packet), "m"(*packet) : "r2", "r3");
#endif
    return sum;
}

/* load_float: VLDR of a float in a byte stream. */
float load_float(const uint8_t *packet)
{
#ifdef BUG
    float value = *AS(float, packet); /* BUG: misaligned access */
#else
    float value;
    memcpy(&value, packet, sizeof value);
#endif
    float sum = value + 1; /* BUG: misaligned access */
    return sum;
}

/* store_pair: a 64-bit time stamp into a byte stream. */
void store_pair(uint8_t *packet, uint32_t low, uint32_t high)
{
#ifdef BUG
    __asm__ volatile("strd %0, %1, [%2]" : : "r"(low), "r"(high), "r"(packet) : "memory"); /* BUG: misaligned access */
#else
    memcpy(packet, &low, 4);
    memcpy(packet + 4, &high, 4);
#endif
}
#endif
