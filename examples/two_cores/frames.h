/* What both cores know: frames of samples in shared memory, and the words that the mailboxes carry.
   Options of the compiler say what a frame is: ROW_BYTES of a row of samples, HOP_ROWS new rows in
   a frame, which consists of the latest HOPS hops, 1 or 2; and FEATURES bytes, if the sensor's core
   computes features of it, else 0. */
#ifndef FRAMES_H
#define FRAMES_H

#include <covp_mailbox.h>
#include <covp_platform.h>

#define HOP_BYTES (HOP_ROWS * ROW_BYTES)
#define FRAME_BYTES (FEATURES ? FEATURES : HOPS * HOP_BYTES)
#define SLOTS 2u /* one is filled while the other one is classified */

#define TO_MAIN ((struct covp_mailbox *)TO_MAIN_BASE)     /* the slot of a new frame, or THE_END */
#define TO_SENSOR ((struct covp_mailbox *)TO_SENSOR_BASE) /* its class */
#define THE_END 0xffffffffu

static inline uint8_t *frame_slot(uint32_t slot)
{
    return (uint8_t *)(SHARED_START + slot * FRAME_BYTES);
}

#endif
