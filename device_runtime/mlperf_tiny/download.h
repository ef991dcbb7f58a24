/* The input that the host sends with `db`. */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

#include <stdbool.h>

/* Whether the whole input is there; says what is missing as a line "e-[...]" if it is not. */
bool download_is_complete(void);
/* The command `db`. */
void download_command(char *rest);

#endif
