/* The core that takes samples: a DMA channel fills a ring of two hops at the sampler's pace; after
   each hop a second channel copies the latest frame into shared memory, or the core computes its
   features there, and a message says where. Between these the core sleeps. Options: PERIOD, cycles
   of the bus from row to row; FRAMES. */
#include <covp_dma.h>
#include <covp_handler.h>
#include <covp_sampler.h>

#include "frames.h"

#define DMA ((struct covp_dma *)DMA_BASE)
#define SAMPLER ((struct covp_sampler *)SAMPLER_BASE)
enum { SAMPLES, COPIES }; /* channels */

static uint8_t ring[2 * HOP_BYTES] __attribute__((aligned(4)));
static volatile uint32_t hops, copied, answered;
volatile uint32_t classes[FRAMES], dropped;

void covp_interrupt(void)
{
    uint32_t status = DMA->status, word;
    DMA->status = status;
    hops += !!(status & COVP_DMA_HALF(SAMPLES)) + !!(status & COVP_DMA_DONE(SAMPLES));
    copied += !!(status & COVP_DMA_DONE(COPIES));
    while (covp_mailbox_try(TO_SENSOR, &word))
        classes[answered++] = word;
}

/* Sleep until a counter of the handler has reached a value. */
static void wait_for(const volatile uint32_t *counter, uint32_t value)
{
    covp_mask_interrupts();
    while (*counter < value) {
        covp_sleep();
        covp_unmask_interrupts(); /* the handler runs here */
        covp_mask_interrupts();
    }
    covp_unmask_interrupts();
}

#if FEATURES
#include "log_mel.h"

static log_mel_state state; /* zeros: after silence */

/* The features of the frame that ends with a hop. */
static void make_frame(uint32_t hop, uint8_t *slot)
{
    const void *samples = ring + hop % 2 * HOP_BYTES;
    log_mel_row(&state, samples, ROW_BYTES / 2, (int8_t *)slot);
}
#else
/* A copy of the frame that ends with a hop. */
static void make_frame(uint32_t hop, uint8_t *slot)
{
    for (uint32_t n = 0; n < HOPS; n++) {
        uint32_t before = copied;
        covp_dma_start(DMA, COPIES, ring + (hop + 1 - HOPS + n) % 2 * HOP_BYTES,
                       slot + n * HOP_BYTES, HOP_BYTES / 4,
                       COVP_DMA_WORDS | COVP_DMA_SOURCE_STEP | COVP_DMA_TARGET_STEP |
                           COVP_DMA_DONE_INTERRUPT);
        wait_for(&copied, before + 1);
    }
}
#endif

static void start(void)
{
    TO_SENSOR->interrupt = COVP_MAILBOX_INTERRUPT;
    covp_enable_line(TO_SENSOR_IRQ);
    covp_enable_line(DMA_IRQ);
    covp_dma_start(DMA, SAMPLES, &SAMPLER->data, ring, 2 * HOP_BYTES / 4,
                   COVP_DMA_WORDS | COVP_DMA_TARGET_STEP | COVP_DMA_CIRCULAR |
                       COVP_DMA_PACED(0, ROW_BYTES / 4) | COVP_DMA_HALF_INTERRUPT |
                       COVP_DMA_DONE_INTERRUPT);
    SAMPLER->period = PERIOD;
    SAMPLER->control = COVP_SAMPLER_ENABLE;
}

int main(void)
{
    uint32_t sent = 0;
    start();
    for (uint32_t hop = HOPS - 1; hop < FRAMES + HOPS - 1; hop++) {
        wait_for(&hops, hop + 1);
        if (sent - answered == SLOTS) { /* the other core is late */
            dropped++;
            continue;
        }
        uint32_t slot = sent++ % SLOTS;
        make_frame(hop, frame_slot(slot));
        covp_mailbox_send(TO_MAIN, slot);
    }
    SAMPLER->control = 0;
    wait_for(&answered, sent);
    covp_mailbox_send(TO_MAIN, THE_END);
    return (int)dropped;
}
