/* The core that classifies: MLPerf Tiny's streaming wake word on each frame of 512 samples of audio
   at 16 kHz, 32 ms: one row of features, one inference of the network on the new row. */
#include "frames.h"
#include "log_mel.h"
#include "sww.h"

_Static_assert(HOPS == 1 && HOP_ROWS == LOG_MEL_HOP && ROW_BYTES == 4, "stereo samples of 16 bits");
_Static_assert(LOG_MEL_BANDS == SWW_INPUT_0_ELEMENTS, "a row is the network's input");

static uint8_t arena[SWW_ARENA_BYTES] __attribute__((aligned(SWW_ARENA_ALIGNMENT)));
static log_mel_state features;
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
    log_mel_reset(&features);
    int frames = 0;
    for (;; frames++) {
        uint32_t slot = covp_mailbox_receive(TO_MAIN, TO_MAIN_IRQ);
        if (slot == THE_END)
            return frames;
        log_mel_row(&features, (const int16_t *)(const void *)frame_slot(slot), 2,
                    SWW_INPUT_0_SCALE, SWW_INPUT_0_ZERO_POINT, rows[frames]);
        sww_run(&model, rows[frames], outputs[frames]);
        covp_mailbox_send(TO_SENSOR, largest(outputs[frames]));
    }
}
