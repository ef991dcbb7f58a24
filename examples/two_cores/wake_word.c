/* The core that classifies: MLPerf Tiny's streaming wake word, one inference for each new row of
   features. */
#include <string.h>

#include "frames.h"
#include "sww.h"

_Static_assert(FRAME_BYTES == SWW_INPUT_0_BYTES, "a row is the network's input");

static uint8_t arena[SWW_ARENA_BYTES] __attribute__((aligned(SWW_ARENA_ALIGNMENT)));
int8_t rows[FRAMES][SWW_INPUT_0_ELEMENTS], outputs[FRAMES][SWW_OUTPUT_0_ELEMENTS];

static uint32_t largest(const int8_t *values)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < SWW_OUTPUT_0_ELEMENTS; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

int main(void)
{
    sww_context model;
    if (sww_init(&model, arena, sizeof arena) != SWW_OK)
        return -1;
    int frames = 0;
    for (;; frames++) {
        uint32_t slot = covp_mailbox_receive(TO_MAIN, TO_MAIN_IRQ);
        if (slot == THE_END)
            return frames;
        memcpy(rows[frames], frame_slot(slot), sizeof rows[frames]);
        sww_run(&model, rows[frames], outputs[frames]);
        covp_mailbox_send(TO_SENSOR, largest(outputs[frames]));
    }
}
