/* conv_2d_0 rows 0 to 5: CONV_2D 1x13x96x3 -> 1x6x48x8 */
#include <stdint.h>
#include <arm_acle.h>
/* bytes 0 and 2 with their signs as halves; not every kernel widens */
static inline __attribute__((unused)) int32_t widened(uint32_t bytes)
{
    return __sxtb16((int32_t)bytes);
}

#include <arm_acle.h>
typedef uint32_t __attribute__((may_alias)) word;
#define BARRIER1(s0) __asm__ volatile("" ::: "memory")
/* by block of 1 channels, then 4 k, then channel */
extern const int16_t vww_01_conv_2d_weights[224];
#define weights vww_01_conv_2d_weights
/* per channel: bias, then requantization */
static const int32_t channel_table[24] __attribute__((aligned(4))) = {
    8430, 1179182713, -8355584, 12818, 836929929, -8355712, 1520, 814580009, -8355713, 8595, 982674548, -8355712, -17007, 500570210, -8355776, 79654, 186729006, -8355808, 10224, 671599027, -8355712, 45784, 272340001, -8355776
};

static inline int32_t requantize(int32_t acc, int32_t multiplier, int32_t offset)
{
    int32_t shifted = (int32_t)((uint32_t)acc << 10);
    int32_t result = ((int32_t)(((int64_t)shifted * multiplier) >> 32) + offset) >> 16;
    result = (int32_t)__builtin_arm_ssat(result, 8);
    return result;
}

static __attribute__((noinline)) void tile(const word *patch, int8_t *output)
{
    const word *w = (const void *)weights;
    const int32_t *q = channel_table;
    for (int32_t block = 0; block < 8; block++) {
        int32_t s00 = q[0], s10 = q[0], s20 = q[0], s30 = q[0];
        const word *x = patch;
        for (int32_t k = 0; k < 1; k++) {
            {
                int32_t a0 = (int32_t)w[0], b0 = (int32_t)w[1];
                int32_t y0 = (int32_t)x[0], z0 = (int32_t)x[1];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[14], z1 = (int32_t)x[15];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[28], z2 = (int32_t)x[29];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[42], z3 = (int32_t)x[43];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            {
                int32_t a0 = (int32_t)w[2], b0 = (int32_t)w[3];
                int32_t y0 = (int32_t)x[2], z0 = (int32_t)x[3];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[16], z1 = (int32_t)x[17];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[30], z2 = (int32_t)x[31];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[44], z3 = (int32_t)x[45];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            {
                int32_t a0 = (int32_t)w[4], b0 = (int32_t)w[5];
                int32_t y0 = (int32_t)x[4], z0 = (int32_t)x[5];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[18], z1 = (int32_t)x[19];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[32], z2 = (int32_t)x[33];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[46], z3 = (int32_t)x[47];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            {
                int32_t a0 = (int32_t)w[6], b0 = (int32_t)w[7];
                int32_t y0 = (int32_t)x[6], z0 = (int32_t)x[7];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[20], z1 = (int32_t)x[21];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[34], z2 = (int32_t)x[35];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[48], z3 = (int32_t)x[49];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            {
                int32_t a0 = (int32_t)w[8], b0 = (int32_t)w[9];
                int32_t y0 = (int32_t)x[8], z0 = (int32_t)x[9];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[22], z1 = (int32_t)x[23];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[36], z2 = (int32_t)x[37];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[50], z3 = (int32_t)x[51];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            {
                int32_t a0 = (int32_t)w[10], b0 = (int32_t)w[11];
                int32_t y0 = (int32_t)x[10], z0 = (int32_t)x[11];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[24], z1 = (int32_t)x[25];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[38], z2 = (int32_t)x[39];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[52], z3 = (int32_t)x[53];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            {
                int32_t a0 = (int32_t)w[12], b0 = (int32_t)w[13];
                int32_t y0 = (int32_t)x[12], z0 = (int32_t)x[13];
                s00 = __smlad(a0, y0, s00);
                s00 = __smlad(b0, z0, s00);
                BARRIER1(s00);
                int32_t y1 = (int32_t)x[26], z1 = (int32_t)x[27];
                s10 = __smlad(a0, y1, s10);
                s10 = __smlad(b0, z1, s10);
                BARRIER1(s10);
                int32_t y2 = (int32_t)x[40], z2 = (int32_t)x[41];
                s20 = __smlad(a0, y2, s20);
                s20 = __smlad(b0, z2, s20);
                BARRIER1(s20);
                int32_t y3 = (int32_t)x[54], z3 = (int32_t)x[55];
                s30 = __smlad(a0, y3, s30);
                s30 = __smlad(b0, z3, s30);
                BARRIER1(s30);
            }
            x += 14;
            w += 14;
        }
        output[0] = (int8_t)requantize(s00, q[1], q[2]);
        output[8] = (int8_t)requantize(s10, q[1], q[2]);
        output[16] = (int8_t)requantize(s20, q[1], q[2]);
        output[24] = (int8_t)requantize(s30, q[1], q[2]);
        output += 1;
        q += 3;
    }
}

static inline void copy(int8_t *to, const int8_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = from[i];
}
static inline void fill(int8_t *to, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = -128;
}
static inline void widen(int16_t *to, const int8_t *from, int32_t count)
{
    const word *source = (const void *)from;
    word *target = (void *)to;
    for (int32_t i = 0; i < count / 4; i++) {
        uint32_t four = source[i];
        target[2 * i] = (uint32_t)widened(four);
        target[2 * i + 1] = (uint32_t)widened((four >> 8) | (four << 24));
    }
}

static void gather(const int8_t *input, int32_t top, int32_t left, int16_t *wide, int8_t *patch)
{
    const int8_t *bytes = patch;
    if ((uint32_t)top <= 10u && (uint32_t)left <= 93u) {
        const int8_t *row = input + top * 288 + left * 3;
        for (int32_t y = 0; y < 3; y++, row += 288, patch += 9)
            copy(patch, row, 9);
    } else
    for (int32_t y = 0; y < 3; y++) {
        if ((uint32_t)(top + y * 1) >= 13u) {
            fill(patch, 9);
            patch += 9;
            continue;
        }
        const int8_t *row = input + (top + y * 1) * 288 + left * 3;
        if (left >= 0 && left <= 93) {
            copy(patch, row, 9);
            patch += 9;
            continue;
        }
        for (int32_t x = 0; x < 3; x++, patch += 3) {
            if ((uint32_t)(left + x * 1) < 96u)
                copy(patch, row + x * 3, 3);
            else
                fill(patch, 3);
        }
    }
    widen(wide, bytes, 28);
}

void vww_01_conv_2d(const int8_t *input, int8_t *output, void *scratch)
{
    int16_t *patches = scratch;
    ((int8_t *)(patches + 112))[27] = 0;
    int32_t top = 0, left = 0;
    for (int32_t pixel = 0; pixel < 288; pixel += 4) {
        for (int32_t p = 0; p < 4; p++) {
            gather(input, top, left, patches + p * 28, (int8_t *)(patches + 112));
            left += 2;
            if (left == 96) {
                left = 0;
                top += 2;
            }
        }
        tile((const void *)patches, output + pixel * 8);
    }
}
