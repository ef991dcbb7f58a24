/* The streaming wake word, sww01: what the firmware needs of a board beside board.h. virtual_io.c
 * has it for covp's virtual board; a port to another board writes it anew. */
#ifndef WAKE_WORD_H
#define WAKE_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

extern const protocol_command wake_word_commands[]; /* start, stop */
/* Compute a frame that has come, or sleep until something comes. */
void wake_word_work(void);

/* Outputs; all are high but PIN_PROCESSING. */
typedef enum {
    PIN_PROCESSING, /* high while a frame is computed */
    PIN_DETECTED,   /* a falling edge says: there was the word */
    PIN_TIMESTAMP   /* falling edges say: measure energy from here, to here */
} wake_word_pin;

/* Pins, audio input and the interrupts that wake the core. */
void io_init(void);
void io_write(wake_word_pin pin, bool level);

/* Receive stereo audio, 16 kHz and int16, into the two halves of a buffer in turn. */
void io_audio_start(int16_t *buffer, uint32_t samples_per_half);
void io_audio_stop(void);
/* Whether half 0 or 1 is full; true only once for each time. Counts halves that were overwritten
 * before that. */
bool io_audio_full(uint32_t half, uint32_t *overruns);

/* Sleep until a half is full or a byte comes over the serial port. */
void io_sleep(void);

#endif
