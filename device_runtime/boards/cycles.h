/* For board_init: start the counter behind board_cycles. */
#ifndef CYCLES_H
#define CYCLES_H

void cycles_start(void);

#endif
