/* Messages of one word to another core: the registers of covp's mailbox (peripherals/mailbox.py; a
   test compares the numbers). The address of a mailbox is the platform's. */
#ifndef COVP_MAILBOX_H
#define COVP_MAILBOX_H

#include <covp_interrupt.h>

struct covp_mailbox {
    volatile uint32_t send;
    volatile uint32_t receive;
    volatile uint32_t status;
    volatile uint32_t interrupt;
};
#define COVP_MAILBOX_COUNT 0xffu
#define COVP_MAILBOX_FULL 0x100u
#define COVP_MAILBOX_OVERFLOW 0x200u
#define COVP_MAILBOX_INTERRUPT 0x1u

/* Send a word, after all that was stored before; polls while the mailbox is full. */
static inline void covp_mailbox_send(struct covp_mailbox *mailbox, uint32_t word)
{
    covp_fence();
    while (mailbox->status & COVP_MAILBOX_FULL)
        ;
    mailbox->send = word;
}

/* Whether there was a word; it is in *word then. */
static inline int covp_mailbox_try(struct covp_mailbox *mailbox, uint32_t *word)
{
    if (!(mailbox->status & COVP_MAILBOX_COUNT))
        return 0;
    *word = mailbox->receive;
    covp_fence();
    return 1;
}

/* The next word; the core sleeps until it is there. line: of the mailbox's interrupt, for which no
   handler runs. Not to be called in a handler. */
static inline uint32_t covp_mailbox_receive(struct covp_mailbox *mailbox, uint32_t line)
{
    uint32_t word;
    mailbox->interrupt = COVP_MAILBOX_INTERRUPT;
    covp_wake_by_line(line);
    while (!covp_mailbox_try(mailbox, &word))
        covp_sleep();
    mailbox->interrupt = 0;
    covp_forget_line(line);
    return word;
}

#endif
