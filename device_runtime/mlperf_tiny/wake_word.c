/* sww01: from `start` to `stop` every 32 ms of audio become a row of features and an inference.
 * The network is the streaming form of covp, which takes the new row and remembers, or the plain
 * one, which is given the last 30 rows each time. */
#include <string.h>

#include "board.h"
#include "log_mel.h"
#include "tiny_benchmark.h"
#include "wake_word.h"

#ifndef WAKE_WORD_LOG
#define WAKE_WORD_LOG 40000 /* outputs that are kept for `stop`: 21 minutes */
#endif
#define WINDOW_ROWS 30u /* that an output depends on */
#define THRESHOLD 115   /* in steps of 1/256 above 1/2: the word's probability is above 0.95 */
#define ROWS (TINY_INPUT_ELEMENTS / LOG_MEL_BANDS)
#define NO_WORD ((int8_t)-128)

static int16_t audio[2][2 * LOG_MEL_HOP]; /* stereo */
static log_mel_state features;
static int8_t window[ROWS][LOG_MEL_BANDS];
static int8_t outputs[WAKE_WORD_LOG];
static uint32_t frames, overruns;
static bool running, failed;

/* A low level for a microsecond: whoever watches the pin sees a falling edge. */
static void pulse(wake_word_pin pin)
{
    io_write(pin, false);
    uint64_t end = board_microseconds() + 1u;
    while (board_microseconds() <= end)
        ;
    io_write(pin, true);
}

/* The word's output after a further row of features; none before the window is full. */
static int8_t classify(const int16_t *samples)
{
    memmove(window[0], window[0] + LOG_MEL_BANDS, (ROWS - 1u) * LOG_MEL_BANDS);
    log_mel_row(&features, samples, 2, window[ROWS - 1u]);
    failed = failed || !tiny_compute(window[0]);
    if (frames + 1u < WINDOW_ROWS)
        return NO_WORD;
    return tiny_result[0];
}

/* The first frame is marked as well: it tells the interface board when the audio began. */
static void process(const int16_t *samples)
{
    io_write(PIN_PROCESSING, true);
    int8_t output = classify(samples);
    if (output > THRESHOLD || frames == 0)
        pulse(PIN_DETECTED);
    if (frames < WAKE_WORD_LOG)
        outputs[frames] = output;
    frames++;
    io_write(PIN_PROCESSING, false);
}

void wake_word_work(void)
{
    if (running && io_audio_full(frames % 2u, &overruns))
        process(audio[frames % 2u]);
    else
        io_sleep();
}

static void start(char *rest)
{
    (void)rest;
    if (running) {
        reply_error("Detection runs already");
        return;
    }
    if (!tiny_start()) {
        reply_error("The model does not start");
        return;
    }
    log_mel_reset(&features);
    memset(window, TINY_INPUT_ZERO_POINT, sizeof window);
    frames = overruns = 0;
    failed = false;
    running = true;
    reply("Listening for I2S data");
    reply_end();
    pulse(PIN_TIMESTAMP);
    io_audio_start(audio[0], LOG_MEL_HOP);
}

static void print_outputs(void)
{
    reply("target activations:");
    reply_end();
    reply("[");
    for (uint32_t i = 0; i < frames && i < WAKE_WORD_LOG; i++) {
        if (i > 0)
            reply(",");
        if (i > 0 && i % 16u == 0)
            reply_end();
        if (outputs[i] < 0)
            reply("-");
        reply_number((uint64_t)(outputs[i] < 0 ? -outputs[i] : outputs[i]));
    }
    reply("]");
    reply_end();
}

static void stop(char *rest)
{
    (void)rest;
    if (!running) {
        reply("Detection does not run");
        reply_end();
        return;
    }
    io_audio_stop();
    pulse(PIN_TIMESTAMP);
    running = false;
    if (failed)
        reply_error("The model reports an error");
    if (overruns > 0)
        reply_error("Frames came faster than they were computed");
    print_outputs();
}

const protocol_command wake_word_commands[] = {
    {"start", start, "- detect the wake word in the audio input"},
    {"stop", stop, "- end that; the output of each frame"},
    {NULL, NULL, NULL},
};
