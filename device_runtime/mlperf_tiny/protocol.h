/* The serial protocol of MLPerf Tiny's host runner, on the device's side: commands end at '%',
 * words are separated by spaces, replies are lines, and "m-ready" follows each command. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_CHARACTERS 80 /* of the longest command, without '%' */

/* One command of a table; the last entry of a table has no name.
 * run: called with the rest of the line after the name, to be taken apart with protocol_word. */
typedef struct {
    const char *name;
    void (*run)(char *rest);
    const char *help;
} protocol_command;

/* The tables of this firmware, ended by NULL (main.c). */
extern const protocol_command *const protocol_tables[];

/* Execute commands forever. */
void protocol_serve(void);

/* What the firmware does while no command waits (main.c): nothing, or a piece of work, or sleep until
 * a byte comes. */
void protocol_idle(void);

/* Whether a further command has come since the one that runs; a long command gives way to it. */
bool protocol_interrupted(void);

/* The next word, ended by '\0' in place; NULL when there is none. */
char *protocol_word(char **rest);

/* Whether two texts are the same. */
bool protocol_same(const char *left, const char *right);

/* A decimal number up to 4294967295; false for anything else. */
bool protocol_number(const char *word, uint32_t *number);

/* Text as it is. */
void reply(const char *text);
/* Text from the host: bytes that do not print become '?'. */
void reply_quoted(const char *text);
/* A decimal number. */
void reply_number(uint64_t number);
/* A decimal number with three places. */
void reply_thousandths(uint64_t number);
/* As printf's "%0.3f" does it; 0 instead of what is no number. */
void reply_float(float value);
/* The end of a line. */
void reply_end(void);
/* A whole line "e-[text]". */
void reply_error(const char *text);
/* A line "m-lap-us-N" with the time in microseconds. */
void reply_timestamp(void);
/* What `help` prints: the commands of all tables. */
void reply_help(void);

#endif
