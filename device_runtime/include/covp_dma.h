/* The registers of covp's DMA controller (peripherals/dma_controller.py; a test compares the
   numbers). Its address is the platform's. */
#ifndef COVP_DMA_H
#define COVP_DMA_H

#include <covp_interrupt.h>

#define COVP_DMA_CHANNELS 4

struct covp_dma_channel {
    volatile uint32_t source;
    volatile uint32_t target;
    volatile uint32_t count;
    volatile uint32_t config;
    volatile uint32_t left;
    uint32_t reserved[3];
};

struct covp_dma {
    struct covp_dma_channel channel[COVP_DMA_CHANNELS];
    volatile uint32_t status;
};

/* CONFIG */
#define COVP_DMA_ENABLE 0x1u
#define COVP_DMA_BYTES 0x0u
#define COVP_DMA_HALFWORDS 0x2u
#define COVP_DMA_WORDS 0x4u
#define COVP_DMA_SOURCE_STEP 0x8u
#define COVP_DMA_TARGET_STEP 0x10u
#define COVP_DMA_CIRCULAR 0x40u
/* Some elements at each request of a peripheral. */
#define COVP_DMA_PACED(request, elements) \
    (0x20u | (uint32_t)(request) << 8 | ((uint32_t)(elements)-1u) << 16)
#define COVP_DMA_HALF_INTERRUPT 0x1000000u
#define COVP_DMA_DONE_INTERRUPT 0x2000000u

/* STATUS, by channel; writing a bit clears it. */
#define COVP_DMA_HALF(channel) (1u << (channel))
#define COVP_DMA_DONE(channel) (0x100u << (channel))

/* Start a channel. count: elements; config: of the above, without ENABLE. */
static inline void covp_dma_start(struct covp_dma *dma, uint32_t channel,
                                  const volatile void *source, volatile void *target,
                                  uint32_t count, uint32_t config)
{
    struct covp_dma_channel *own = &dma->channel[channel];
    own->config = 0;
    dma->status = COVP_DMA_HALF(channel) | COVP_DMA_DONE(channel);
    own->source = (uint32_t)(uintptr_t)source;
    own->target = (uint32_t)(uintptr_t)target;
    own->count = count;
    covp_fence();
    own->config = config | COVP_DMA_ENABLE;
}

#endif
