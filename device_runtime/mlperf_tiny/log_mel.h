/* The features of MLPerf Tiny's streaming wake word: logarithms of the energies of 40 mel bands.
 *
 * Every 32 ms, 512 samples at 16 kHz, there is a new row, of the latest 64 ms. All is integers, so
 * that cores without a floating-point unit keep up and every core gives the same bits. */
#ifndef LOG_MEL_H
#define LOG_MEL_H

#include <stdint.h>

#define LOG_MEL_HOP 512     /* new samples of a row */
#define LOG_MEL_WINDOW 1024 /* samples that a row is computed of */
#define LOG_MEL_BANDS 40

/* What the next row needs; work is scratch memory. */
typedef struct {
    int32_t previous;            /* the latest sample */
    int32_t half[LOG_MEL_HOP];   /* the latest samples with pre-emphasis */
    int32_t work[LOG_MEL_WINDOW];
} log_mel_state;

/* As after silence. */
void log_mel_reset(log_mel_state *state);

/* The row after LOG_MEL_HOP new samples, of which every stride-th int16 is one (2: the left channel
 * of a stereo stream), in the quantization of the network's input. */
void log_mel_row(log_mel_state *state, const int16_t *samples, uint32_t stride,
                 int8_t row[LOG_MEL_BANDS]);

#endif
