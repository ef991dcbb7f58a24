/* The core that classifies: the CODAI'22 paper's network on each frame of 128 rows of an inertial
   sensor, six float32 each. */
#include "codai22.h"
#include "frames.h"

_Static_assert(FRAME_BYTES == CODAI22_INPUT_0_BYTES, "a frame is the network's input");

static uint8_t arena[CODAI22_ARENA_BYTES] __attribute__((aligned(CODAI22_ARENA_ALIGNMENT)));
float outputs[FRAMES][CODAI22_OUTPUT_0_ELEMENTS];

static uint32_t largest(const float *values)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < CODAI22_OUTPUT_0_ELEMENTS; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

int main(void)
{
    codai22_context model;
    if (codai22_init(&model, arena, sizeof arena) != CODAI22_OK)
        return -1;
    int frames = 0;
    for (;; frames++) {
        uint32_t slot = covp_mailbox_receive(TO_MAIN, TO_MAIN_IRQ);
        if (slot == THE_END)
            return frames;
        codai22_run(&model, (const float *)(const void *)frame_slot(slot), outputs[frames]);
        covp_mailbox_send(TO_SENSOR, largest(outputs[frames]));
    }
}
