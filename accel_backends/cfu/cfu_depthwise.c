/* Depthwise convolution: the rows under the kernel are kept padded with the zero point, so that
   every output pixel is the same straight loop over its taps. */
#include "cfu_depthwise.h"

#include "cfu.h"

static void fill(cfu_word *to, uint32_t value, int32_t words)
{
    for (; words > 0; words--)
        *to++ = value;
}

/* Row y of the image, padded; all zero point outside of it. */
static void load_row(const struct cfu_depthwise *d, const cfu_word *image, int32_t y, cfu_word *to)
{
    int32_t pixel = d->channels / 4, inside = d->in_width * pixel;
    int32_t left = d->pad_left * pixel, right = d->pad_right * pixel;
    if (y < 0 || y >= d->in_height) {
        fill(to, d->zero_points, left + inside + right);
        return;
    }
    fill(to, d->zero_points, left);
    const cfu_word *from = image + y * inside;
    to += left;
    int32_t i = inside;
    for (; i >= 4; i -= 4) {
        uint32_t a = from[0], b = from[1], c = from[2], e = from[3];
        to[0] = a, to[1] = b, to[2] = c, to[3] = e;
        from += 4;
        to += 4;
    }
    for (; i > 0; i--)
        *to++ = *from++;
    fill(to, d->zero_points, right);
}

/* Four channels of one output pixel from four accumulators. */
#define RESULT(i, j, k, l, table)                                              \
    ((uint32_t)(uint8_t)cfu_requantize(i, (table)[1], (table)[2]) |            \
     (uint32_t)(uint8_t)cfu_requantize(j, (table)[4], (table)[5]) << 8 |       \
     (uint32_t)(uint8_t)cfu_requantize(k, (table)[7], (table)[8]) << 16 |      \
     (uint32_t)(uint8_t)cfu_requantize(l, (table)[10], (table)[11]) << 24)

#define START(first, table)               \
    do {                                  \
        cfu_set(first, (table)[0]);       \
        cfu_set((first) + 1, (table)[3]); \
        cfu_set((first) + 2, (table)[6]); \
        cfu_set((first) + 3, (table)[9]); \
    } while (0)

void cfu_depthwise(const uintptr_t *words, const void *input, void *output, void *rows,
                   uint32_t batch)
{
    const struct cfu_depthwise *d = (const struct cfu_depthwise *)words;
    const cfu_word *image = input;
    cfu_word *out = output;
    int32_t groups = d->channels / 4;
    int32_t row_words = (d->pad_left + d->in_width + d->pad_right) * groups;
    int32_t step = d->stride_width * groups, taps = d->kernel_width;
    for (; batch > 0; batch--) {
        int32_t loaded = -d->pad_top; /* rows before this one are or were in their slot */
        for (int32_t y = 0; y < d->out_height; y++) {
            int32_t top = y * d->stride_height - d->pad_top;
            if (loaded < top)
                loaded = top;
            for (; loaded < top + d->kernel_height; loaded++) {
                int32_t slot = (loaded + d->pad_top) % d->kernel_height;
                load_row(d, image, loaded, (cfu_word *)rows + slot * row_words);
            }
            const cfu_word *w = d->weights;
            const int32_t *table = d->table;
            for (int32_t g = 0; g < groups; g++) {
                const cfu_word *here = (const cfu_word *)rows + g;
                cfu_word *to = out + g;
                int32_t x = d->out_width;
                for (; x >= 4; x -= 4) {
                    const cfu_word *weight = w;
                    START(0, table);
                    START(4, table);
                    START(8, table);
                    START(12, table);
                    int32_t slot = (top + d->pad_top) % d->kernel_height;
                    for (int32_t ky = 0; ky < d->kernel_height; ky++) {
                        const cfu_word *at = here + slot * row_words;
                        for (int32_t kx = 0; kx < taps; kx++) {
                            uint32_t v = *weight++, a = at[0], b = at[step];
                            uint32_t c = at[2 * step], e = at[3 * step];
                            cfu_lanes(0, a, v);
                            cfu_lanes(4, b, v);
                            cfu_lanes(8, c, v);
                            cfu_lanes(12, e, v);
                            at += groups;
                        }
                        if (++slot == d->kernel_height)
                            slot = 0;
                    }
                    to[0] = RESULT(0, 1, 2, 3, table);
                    to[groups] = RESULT(4, 5, 6, 7, table);
                    to[2 * groups] = RESULT(8, 9, 10, 11, table);
                    to[3 * groups] = RESULT(12, 13, 14, 15, table);
                    to += 4 * groups;
                    here += 4 * step;
                }
                for (; x > 0; x--) {
                    const cfu_word *weight = w;
                    START(0, table);
                    int32_t slot = (top + d->pad_top) % d->kernel_height;
                    for (int32_t ky = 0; ky < d->kernel_height; ky++) {
                        const cfu_word *at = here + slot * row_words;
                        for (int32_t kx = 0; kx < taps; kx++, at += groups)
                            cfu_lanes(0, *at, *weight++);
                        if (++slot == d->kernel_height)
                            slot = 0;
                    }
                    *to = RESULT(0, 1, 2, 3, table);
                    to += groups;
                    here += step;
                }
                w += d->kernel_height * taps;
                table += 12;
            }
            out += d->out_width * groups;
        }
        image += d->in_height * d->in_width * groups;
    }
}
